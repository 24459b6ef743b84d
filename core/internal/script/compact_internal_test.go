package script

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// lastMillisecond comes before a script, whose PTTL it answers with 0 once, as Redis does in the last millisecond of a key.
const lastMillisecond = `local redis = (function(server)
  return setmetatable({call = function(name, ...)
    return name == 'PTTL' and 0 or server.call(name, ...)
  end}, {__index = server})
end)(redis)
`

// TestExpandInTheLastMillisecond: a lock that another client asks for in its last millisecond expires all the same.
func TestExpandInTheLastMillisecond(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	script := redis.NewScript(lastMillisecond + source("lock_kind", "compact") + "expand(KEYS[1], KEYS[2], KEYS[3])")
	for _, mode := range []string{"30000", "fair 30000", "writing 30000", "reading 30000", "semaphore:5:2 30000"} {
		keys := []string{"lock:" + mode, "share_expiries:" + mode, "slots:" + mode}
		rdb.HSet(ctx, keys[0], "client:1", 1, "mode", mode+" 1795427385383848")
		rdb.PExpire(ctx, keys[0], 20_000_000_000)
		if err := script.Run(ctx, rdb, keys).Err(); err != nil && err != redis.Nil {
			t.Fatalf("%s: %v", mode, err)
		}
		for _, key := range keys {
			if left := rdb.PTTL(ctx, key).Val(); left == -1 {
				t.Errorf("%s has no expiry", key)
			}
		}
	}
}
