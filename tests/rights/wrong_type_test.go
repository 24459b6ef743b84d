package rights_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// dataHashes are hashes of an application, by the part of them that looks like a lock.
func dataHashes() map[string]map[string]any {
	many := map[string]any{"mode": "dark"}
	for i := range 2000 {
		many[fmt.Sprint("field", i)] = i
	}
	const owner = "8b0f7e2d-0000-4000-8000-000000000001:42"
	return map[string]map[string]any{
		"field":            {"a": 1},
		"fields":           {"name": "Ada", "iban": "DE02"},
		"many":             many,
		"ttl":              {"ttl": 5, "a": 1},
		"mode":             {"mode": "dark"},
		"mode 3":           {"mode": "3", "name": "Ada"},
		"mode fair 3":      {"mode": "fair 3", "name": "Ada"},
		"mode level 3":     {"mode": "level 3 7", "name": "Ada"},
		"compact and more": {"mode": "3000 7", "a": 1, "b": 2},
		"mode fair":        {"mode": "fair", "name": "Ada"},
		"mode read":        {"mode": "read", "name": "Ada"},
		"owner and more":   {owner: 1, "name": "Ada"},
		"owner of text":    {owner: "Ada"},
		"session":          {"8b0f7e2d-0000-4000-8000-000000000001": 1},
	}
}

// redissonHashes are locks of Redisson.
func redissonHashes() map[string]map[string]any {
	const owner, other = "8b0f7e2d-0000-4000-8000-000000000001:42", "8b0f7e2d-0000-4000-8000-000000000002:-7"
	many := map[string]any{"mode": "read"}
	for i := range 100 {
		many[fmt.Sprint("8b0f7e2d-0000-4000-8000-000000000001:", i)] = 1
	}
	return map[string]map[string]any{
		"RLock": {owner: 2}, "RLock by a negative thread": {other: 1},
		"read": {"mode": "read", owner: 1, other: 3}, "write": {"mode": "write", owner + ":write": 1},
		"write and read": {"mode": "write", owner + ":write": 1, owner: 1}, "many readers": many,
	}
}

// fieldsOf returns a hash.
func fieldsOf(rdb *redis.Client, key string) map[string]string {
	return rdb.HGetAll(context.Background(), key).Val()
}

// TestDataIsNoLock: a hash of an application at the key of a lock is an error at once, for all strategies and all that
// operators do. The hash stays as it is. Locks of Redisson are locks.
func TestDataIsNoLock(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	for what, fields := range dataHashes() {
		key := "lock:" + what
		rdb.HSet(ctx, key, fields)
		before := fieldsOf(rdb, key)
		for kind, strategy := range coretest.Strategies(locks) {
			if err := coretest.TryLock(strategy(what)); !isWrongType(err) {
				t.Errorf("%s: TryLock of %s: %v", what, kind, err)
			}
			if _, err := strategy(what).Lock(ctx); !isWrongType(err) {
				t.Errorf("%s: Lock of %s: %v", what, kind, err)
			}
		}
		election := locks.Election(what)
		_, inspected := locks.Inspect(ctx, what)
		_, forced := locks.ForceUnlock(ctx, what)
		_, forcedHolder := locks.ForceUnlockHolder(ctx, what, core.Holder{Owner: "name"})
		_, leader := election.Leader(ctx)
		_, campaign := election.Campaign(ctx)
		for operation, err := range map[string]error{
			"Multi": coretest.TryLock(core.Multi(locks.Mutex("{"+what+"}:free"), locks.Mutex(what))), "Inspect": inspected,
			"ForceUnlock": forced, "ForceUnlockHolder": forcedHolder, "Leader": leader, "Campaign": campaign,
		} {
			if !isWrongType(err) {
				t.Errorf("%s: %s: %v", what, operation, err)
			}
		}
		if page, err := coretest.LockPage(ctx, locks, what, "", 0); err != nil || len(page.Locks) != 0 || page.Skipped == 0 {
			t.Errorf("%s: listed as %+v, %v", what, page, err)
		}
		if after := fieldsOf(rdb, key); !maps.Equal(before, after) || rdb.PTTL(ctx, key).Val() != -1 {
			t.Errorf("%s: the hash was %v, and is %v", what, before, after)
		}
		rdb.Del(ctx, key)
	}
	for what, fields := range redissonHashes() {
		key := "lock:" + what
		for kind, strategy := range coretest.Strategies(locks) {
			rdb.HSet(ctx, key, fields)
			rdb.PExpire(ctx, key, coretest.Long)
			coretest.WantErr(t, coretest.TryLock(strategy(what)), core.ErrNotAcquired)
			page, err := coretest.LockPage(ctx, locks, what, "", 0)
			info, inspected := locks.Inspect(ctx, what)
			if err != nil || inspected != nil || info.Mode == "" || len(page.Locks) == 0 || !page.Locks[0].Foreign || page.Skipped != 0 {
				t.Errorf("%s: %s: %+v, %v, listed as %+v, %v", what, kind, info, inspected, page, err)
			}
			if forced, err := locks.ForceUnlock(ctx, what); err != nil || !forced {
				t.Errorf("%s: %s: forced %v, %v", what, kind, forced, err)
			}
		}
	}
}

func isWrongType(err error) bool { return errors.Is(err, core.ErrWrongType) }

// overwrite puts data in the place of a lock, and returns a function that checks that it stays as it is.
func overwrite(t *testing.T, rdb *redis.Client, key string, fields map[string]any) (check func()) {
	t.Helper()
	ctx := context.Background()
	pipe := rdb.TxPipeline()
	pipe.Del(ctx, key)
	pipe.HSet(ctx, key, fields)
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	before := fieldsOf(rdb, key)
	return func() {
		t.Helper()
		if after := fieldsOf(rdb, key); !maps.Equal(before, after) || rdb.PTTL(ctx, key).Val() != -1 {
			t.Errorf("%s: the hash was %v, and is %v", key, before, after)
		}
	}
}

// TestHolderMeetsData: the lease of a lock in whose place is data ends as one that was force-released, and leaves the data alone.
func TestHolderMeetsData(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	for kind, strategy := range coretest.Strategies(locks) {
		for what, fields := range dataHashes() {
			name := kind + what
			lease := coretest.MustLock(t, strategy(name))
			check := overwrite(t, rdb, "lock:"+name, fields)
			if err := lease.Extend(ctx, coretest.Long); err == nil {
				t.Errorf("%s: the lease was extended", name)
			}
			if err := lease.Unlock(ctx); err == nil {
				t.Errorf("%s: the lease was unlocked", name)
			}
			check()
		}
	}
}

// TestWaiterMeetsData: a waiter hears of data that has taken the place of the lock.
func TestWaiterMeetsData(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	for kind, strategy := range coretest.Exclusives(locks) {
		for _, what := range []string{"field", "mode 3", "ttl"} {
			t.Run(kind+" "+what, func(t *testing.T) {
				t.Parallel()
				name := kind + what
				coretest.MustLock(t, strategy(name))
				waiting := coretest.LockLater(strategy(name))
				testkit.Eventually(t, coretest.Within, "the waiter", func() bool {
					info, err := locks.Inspect(context.Background(), name)
					return err == nil && (len(info.Queue) == 1 || kind == "Mutex" && info.Waiters > 0)
				})
				check := overwrite(t, rdb, "lock:"+name, dataHashes()[what])
				if err := coretest.Receive(t, waiting); !isWrongType(err) {
					t.Errorf("the waiter: %v", err)
				}
				check()
			})
		}
	}
}

// TestRedlockMeetsData: on all servers of a Redlock.
func TestRedlockMeetsData(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	three := coretest.StartMasters(t, 3)
	for _, rdb := range three.Looks {
		rdb.HSet(ctx, "lock:name", "a", 1)
	}
	r := three.Redlock(t)
	coretest.WantErr(t, coretest.TryLock(r.Mutex("name")), core.ErrWrongType)
	_, err := r.ForceUnlock(ctx, "name")
	coretest.WantErr(t, err, core.ErrWrongType)
	for _, rdb := range three.Looks {
		if fields := fieldsOf(rdb, "lock:name"); len(fields) != 1 || fields["a"] != "1" {
			t.Errorf("the hash is %v", fields)
		}
	}
}

// TestDataIsNoRecord: a hash of an application, or a string, at the key of a record is an error for all operations, and stays.
func TestDataIsNoRecord(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	for what, fields := range map[string]map[string]any{
		"field": {"a": 1}, "state": {"state": "active"}, "running": {"state": "running", "name": "Ada"}, "note": {"note": "x", "value": "y"},
	} {
		rdb.HSet(ctx, coretest.RecordOf(what), fields)
		before := fieldsOf(rdb, coretest.RecordOf(what))
		o := locks.Once(what)
		_, begin := o.Begin(ctx)
		_, peek := o.Peek(ctx)
		for operation, err := range map[string]error{
			"Begin": begin, "Peek": peek, "Resolve": coretest.ResolveNow(ctx, o, nil), "Forget": coretest.ForgetNow(ctx, o),
			"Begin with a window": func() error {
				_, err := locks.Once(what, core.WithFailurePolicy(core.HoldFailures), core.WithFingerprint([]byte("f"))).Begin(ctx)
				return err
			}(),
		} {
			if !isWrongType(err) {
				t.Errorf("%s: %s: %v", what, operation, err)
			}
		}
		if page, err := coretest.RecordPage(ctx, locks, what, "", 0); err != nil || len(page.Records) != 0 {
			t.Errorf("%s: listed as %+v, %v", what, page, err)
		}
		if after := fieldsOf(rdb, coretest.RecordOf(what)); !maps.Equal(before, after) || rdb.PTTL(ctx, coretest.RecordOf(what)).Val() != -1 {
			t.Errorf("%s: the hash was %v, and is %v", what, before, after)
		}
	}
	a := coretest.MustBegin(t, locks.Once("overwritten"))
	rdb.Del(ctx, coretest.RecordOf("overwritten"))
	rdb.HSet(ctx, coretest.RecordOf("overwritten"), "a", 1)
	coretest.WantErr(t, a.Complete(ctx, nil), core.ErrWrongType)
	if fields := fieldsOf(rdb, coretest.RecordOf("overwritten")); len(fields) != 1 {
		t.Errorf("the hash is %v", fields)
	}
}
