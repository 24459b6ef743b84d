package rights_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestWaiterOfNoClient: another program adds waiters to a queue whose ids name no client. They are removed as what no
// script writes, and get no lock: a script that granted it to them would fail when it has to notify them.
func TestWaiterOfNoClient(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	for _, waiters := range []int{1, 300} { // one, and more than one run removes
		for mode, c := range map[string]struct {
			strategy core.Strategy
			queue    string
		}{
			"fair": {locks.Fair, "exclusive_queue"}, "writing": {locks.Write, "exclusive_queue"}, "reading": {locks.Read, "shared_queue"},
			"semaphore:10:2": {locks.Limit(3), "shared_queue"},
		} {
			name := fmt.Sprint(mode, waiters)
			for i := range waiters {
				id := fmt.Sprint("x", i)
				rdb.ZAdd(ctx, "holdfast:"+c.queue+":{lock:"+name+"}", redis.Z{Score: float64(i + 1), Member: id})
				place := fmt.Sprintf("%d 5000 %s own", time.Now().Add(3*time.Second).UnixMilli(), mode)
				if err := rdb.HSet(ctx, "holdfast:waiters:{lock:"+name+"}", id, place).Err(); err != nil {
					t.Fatal(err)
				}
			}
			lease := coretest.MustLock(t, c.strategy(name, core.WithWait(coretest.Long)))
			if left := rdb.HLen(ctx, "holdfast:waiters:{lock:"+name+"}").Val(); left != 0 {
				t.Errorf("%s: %d waiters are left", name, left)
			}
			coretest.Unlock(t, lease)
		}
	}
}
