package rights_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// setScores gives all members of the sorted sets beside a lock a score.
func setScores(ctx context.Context, rdb *redis.Client, name string, score float64) (found int) {
	for _, set := range []string{"share_expiries", "exclusive_queue", "shared_queue", "slots"} {
		key := "holdfast:" + set + ":{lock:" + name + "}"
		for _, member := range rdb.ZRange(ctx, key, 0, -1).Val() {
			rdb.ZAdd(ctx, key, redis.Z{Score: score, Member: member})
			found++
		}
	}
	return found
}

// TestImpossibleScores: another program gives the members of the sorted sets beside a shared lock a score that no script writes. All
// operations that need the score refuse it with ErrWrongType, and write nothing. An operator can still force the lock.
func TestImpossibleScores(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	for kind, strategy := range map[string]core.Strategy{"read": locks.Read, "semaphore": locks.Limit(3)} {
		for _, score := range []float64{math.Inf(1), math.Inf(-1), 1e300, -1e300, 9007194959773697} {
			name := fmt.Sprintf("scores-%s-%v", kind, score)
			lease, again := coretest.MustLock(t, strategy(name)), coretest.MustLock(t, strategy(name))
			if setScores(ctx, rdb, name, score) < 2 {
				t.Fatalf("%s has no sorted sets", name)
			}
			before := testkit.Stored(t, rdb, "*"+name+"*")
			_, forcedHolder := locks.ForceUnlockHolder(ctx, name, core.Holder{Owner: "name"})
			for operation, err := range map[string]error{
				"TryLock": coretest.TryLock(strategy(name)), "TryLock of a writer": coretest.TryLock(locks.Write(name)),
				"Extend": lease.Extend(ctx, coretest.Long), "ForceUnlockHolder": forcedHolder, "Unlock": again.Unlock(ctx),
			} {
				if !isWrongType(err) {
					t.Errorf("%s: %s: %v", name, operation, err)
				}
			}
			if after := testkit.Stored(t, rdb, "*"+name+"*"); !maps.Equal(before, after) {
				t.Errorf("%s: a refused operation has written", name)
			}
			if forced, err := locks.ForceUnlock(ctx, name); err != nil || !forced {
				t.Errorf("%s: forced %v, %v", name, forced, err)
			}
			coretest.WantErr(t, coretest.TryLock(strategy(name)), nil)
			if err := lease.Unlock(ctx); err != nil && !errors.Is(err, core.ErrNotHeld) {
				t.Errorf("%s: Unlock: %v", name, err)
			}
		}
	}
}

// TestImpossibleFields: another program overwrites a field with which a script computes. The holder's calls are refused with
// ErrWrongType, or work as if the field had not changed.
func TestImpossibleFields(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	for kind, strategy := range map[string]core.Strategy{
		"mutex": locks.Mutex, "fair": locks.Fair, "write": locks.Write, "read": locks.Read, "semaphore": locks.Limit(3),
	} {
		for _, field := range []string{"owner", "token", "ttl", "min_hold_until", "exclusive_until", "read:owner", "share:owner", "permits:owner"} {
			for _, value := range []string{"x", "", "inf", "-1", "1e300", "99999999999999999999"} {
				name := fmt.Sprintf("fields-%s-%s-%s", kind, field, value)
				lease := coretest.MustLock(t, strategy(name, core.WithOwner("owner")))
				entered := coretest.MustLock(t, strategy(name, core.WithOwner("owner"))) // so the lock has all its fields
				if rdb.HSet(ctx, "lock:"+name, field, value).Val() != 0 {
					rdb.HDel(ctx, "lock:"+name, field) // it has no such field
				}
				for operation, err := range map[string]error{
					"TryLock": coretest.TryLock(strategy(name, core.WithOwner("owner"))), "Extend": lease.Extend(ctx, coretest.Long), "Unlock": entered.Unlock(ctx),
				} {
					var raw redis.Error
					if errors.As(err, &raw) && !isWrongType(err) {
						t.Errorf("%s: %s: %v", name, operation, err)
					}
				}
				_ = lease.Unlock(ctx)
			}
		}
	}
}
