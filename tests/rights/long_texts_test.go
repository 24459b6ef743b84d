package rights_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestLongTexts: another program writes long texts of digits that end in a letter to the fields of a lock. The time
// that a script needs for one does not grow with the square of its length, and a mode that is one is refused with
// ErrWrongType.
func TestLongTexts(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	digits := strings.Repeat("1", 40_000) // 1.6 billion steps of a pattern that tries each start: a minute
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for kind, strategy := range map[string]core.Strategy{
		"mutex": locks.Mutex, "fair": locks.Fair, "read": locks.Read, "semaphore": locks.Limit(3),
	} {
		for _, field := range []string{"mode", "permits:owner", "read:owner", "share:owner", "token", "ttl", "leader_value", "owner"} {
			for i, value := range []string{digits + "x", "1 " + digits + "x", digits} {
				name := fmt.Sprintf("long-%s-%s-%d", kind, field, i)
				lease, err := strategy(name, core.WithOwner("owner")).TryLock(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if field != "mode" { // entered again, the lock has all its fields
					if _, err := strategy(name, core.WithOwner("owner")).TryLock(ctx); err != nil {
						t.Fatal(err)
					}
				}
				if err := rdb.HSet(ctx, "lock:"+name, field, value).Err(); err != nil {
					t.Fatal(err)
				}
				_, tried := strategy(name, core.WithOwner("owner")).TryLock(ctx)
				_, inspected := locks.Inspect(ctx, name)
				_, forcedHolder := locks.ForceUnlockHolder(ctx, name, core.Holder{Owner: "someone"})
				results := map[string]error{
					"TryLock": tried, "Extend": lease.Extend(ctx, coretest.Long), "Inspect": inspected,
					"ForceUnlockHolder": forcedHolder,
				}
				if field == "mode" {
					_, results["ForceUnlock"] = locks.ForceUnlock(ctx, name)
					_, results["Leader"] = locks.Election(name).Leader(ctx)
				}
				for operation, err := range results {
					if field == "mode" && !isWrongType(err) {
						t.Errorf("%s: %s: %v", name, operation, err)
					}
				}
				if err := lease.Unlock(ctx); ctx.Err() != nil {
					t.Fatalf("%s: out of time: %v", name, err)
				}
				rdb.Del(ctx, "lock:"+name)
			}
		}
	}
}
