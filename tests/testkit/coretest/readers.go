package coretest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	SharesOfName = "holdfast:share_expiries:{lock:name}"
	ManyShares   = 40_000
	Sweep        = 100 // of them in one run, see internal/script/lua/lock/queue_common.lua
)

// ShareOut gives the lock, which is shared by one holder, to many others that have crashed. Their shares end, or have
// ended, at that time.
func ShareOut(t *testing.T, rdb *redis.Client, n int, ends time.Time) {
	t.Helper()
	ctx := context.Background()
	for done := 0; done < n; {
		if _, err := rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for range 1000 {
				owner, id := fmt.Sprintf("crashed:%d", done), fmt.Sprintf("share-of-crashed:%d", done)
				pipe.HSet(ctx, "lock:name", "share:"+id, "0 "+owner, "read:"+owner, "1 7 7")
				pipe.ZAdd(ctx, SharesOfName, redis.Z{Score: float64(ends.UnixMilli()), Member: id})
				done++
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}
