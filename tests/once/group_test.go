package once_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestTokensOfABoundedGroup: they grow from key to key and from attempt to attempt, though each key leaves nothing, and
// though the server's clock was set back or its memory is lost; also beside a lock of the same name.
func TestTokensOfABoundedGroup(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	last := int64(0)
	run := func(key string, opts ...core.OnceOption) {
		t.Helper()
		a := coretest.MustBegin(t, locks.Once(key, append(opts, core.WithQuota(1))...))
		if a.Token() <= last {
			t.Errorf("%s: token %d after %d", key, a.Token(), last)
		}
		last = a.Token()
		if err := a.Release(ctx); err != nil || a.Number() != 1 {
			t.Errorf("%s: attempt %d, %v", key, a.Number(), err)
		}
	}
	run("{a}:1")
	ahead := time.Now().Add(time.Hour).UnixMicro() // that is where the clock was
	rdb.Set(ctx, "holdfast:token", ahead, time.Hour)
	last = ahead
	run("{a}:1")
	run("{a}:2", core.WithQuota(2))
	lock := coretest.MustLock(t, locks.Mutex("{a}:3"))
	coretest.Unlock(t, lock)
	if keys, _ := lasting(t, rdb); len(keys) != 1 {
		t.Errorf("keys %q, want the last token alone", keys)
	}
	rdb.Set(ctx, "holdfast:token", 2*ahead, time.Hour)
	last = 2 * ahead
	run("{a}:3")
	if lock := coretest.MustLock(t, locks.Mutex("{a}:3")); lock.Token() <= last {
		t.Errorf("token %d of the lock after %d", lock.Token(), last)
	}
	rdb.FlushDB(ctx)
	now := rdb.Time(ctx).Val().UnixMicro()
	if a := coretest.MustBegin(t, locks.Once("{a}:1", core.WithQuota(1))); a.Token() < now {
		t.Errorf("token %d, the clock says %d", a.Token(), now)
	}
}

// TestOvertakenInABoundedGroup: the record of a later attempt that was released stays and counts, and becomes the record of the run
// which it overtook.
func TestOvertakenInABoundedGroup(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	of := func(key string) *core.Once { return locks.Once(key, core.WithQuota(1)) }
	late := coretest.MustBegin(t, of("{a}:1"))
	coretest.Abandon(t, rdb, "{a}:1")
	if err := coretest.MustBegin(t, of("{a}:1")).Release(ctx); err != nil {
		t.Fatal(err)
	}
	coretest.WantState(t, of("{a}:1"), core.StateNone, 2)
	_, err := of("{a}:2").Begin(ctx)
	coretest.WantErr(t, err, core.ErrTooManyKeys)
	if err := late.Complete(ctx, nil); err != nil {
		t.Error(err)
	}
	coretest.WantState(t, of("{a}:1"), core.StateCompleted, 1)
	_, err = of("{a}:2").Begin(ctx)
	coretest.WantErr(t, err, core.ErrTooManyKeys)
}

// TestRunningRecordStaysInItsGroup: renewals prolong the place of a record as they prolong the record, so it counts and is
// listed for as long as it is there.
func TestRunningRecordStaysInItsGroup(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(3*time.Second))
	of := func(i int) *core.Once {
		return locks.Once(fmt.Sprintf("{a}:%d", i), core.WithQuota(1), core.WithRetention(3*time.Second))
	}
	a := coretest.MustBegin(t, of(1))
	began := rdb.ZScore(ctx, groupOf("a"), coretest.RecordOf("{a}:1")).Val()
	testkit.Eventually(t, coretest.Within, "a place for longer than one retention", func() bool {
		return rdb.ZScore(ctx, groupOf("a"), coretest.RecordOf("{a}:1")).Val() > began+500
	})
	if records, err := locks.GroupRecords(ctx, "{a}"); err != nil || len(records) != 1 {
		t.Errorf("%+v, %v", records, err)
	}
	_, err := of(2).Begin(ctx)
	coretest.WantErr(t, err, core.ErrTooManyKeys)
	// It was lost: evicted, say.
	rdb.Del(ctx, groupOf("a"))
	testkit.Eventually(t, coretest.Within, "the group to be made anew", func() bool {
		return rdb.ZCard(ctx, groupOf("a")).Val() == 1
	})
	if err := a.Release(ctx); err != nil {
		t.Error(err)
	}
	// One that comes too late.
	status, err := coretest.LuaScript(t, "once/common", "once/group", "once/enlist").Run(ctx, rdb,
		[]string{coretest.RecordOf("{a}:1"), groupOf("a")}, "id", 2048).Int()
	if err != nil || status != 0 || rdb.Exists(ctx, groupOf("a"), coretest.RecordOf("{a}:1")).Val() != 0 {
		t.Errorf("%d, %v", status, err)
	}
}

// TestForgetOfAGroup: a caller that forgets or resolves a record need not know that it counts in a group.
func TestForgetOfAGroup(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	if err := coretest.MustBegin(t, locks.Once("{a}:1", core.WithQuota(1))).Hold(ctx, "reason"); err != nil {
		t.Fatal(err)
	}
	until := rdb.ZScore(ctx, groupOf("a"), coretest.RecordOf("{a}:1")).Val()
	if err := coretest.ResolveNow(ctx, locks.Once("{a}:1", core.WithRetention(48*time.Hour)), make([]byte, 4096)); err != nil {
		t.Fatal(err)
	}
	if rdb.ZScore(ctx, groupOf("a"), coretest.RecordOf("{a}:1")).Val() <= until {
		t.Error("a resolved record counts no longer than before")
	}
	if records, err := locks.GroupRecords(ctx, "{a}"); err != nil || len(records) != 1 {
		t.Errorf("%+v, %v", records, err)
	}
	coretest.Forget(t, locks.Once("{a}:1"))
	if n := rdb.Exists(ctx, groupOf("a")).Val(); n != 0 {
		t.Error("a forgotten record counts")
	}
	if err := coretest.ResolveNow(ctx, locks.Once("{a}:2"), nil); err != nil || rdb.Exists(ctx, groupOf("a")).Val() != 0 {
		t.Errorf("a record that nobody has listed counts: %v", err)
	}
	coretest.MustBegin(t, locks.Once("{a}:3", core.WithQuota(1)))
}

// TestRecordsSurviveAMigration: while their slot moves, records cannot be listed, but their leases are renewed; and
// afterwards they count as before.
func TestRecordsSurviveAMigration(t *testing.T) {
	t.Parallel()
	const ttl = 9 * time.Second // two renewals that fail on a busy machine lose no lease
	cluster := testkit.StartCluster(t, 2)
	rdb := cluster.Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(ttl))
	a := coretest.MustBegin(t, locks.Once("{m}:1", core.WithQuota(1), core.WithRetention(2*ttl)))
	renewed := func() {
		t.Helper()
		until := a.ValidUntil()
		testkit.Eventually(t, coretest.Within, "a renewal", func() bool { return a.ValidUntil().After(until.Add(ttl / 4)) })
	}
	slot := cluster.Slot("lock:{m}")
	m := cluster.BeginMigration(slot, coretest.ServedElsewhere(cluster, slot))
	renewed()
	m.MoveKeys(coretest.RecordOf("{m}:1"))
	renewed()
	renewed()
	m.MoveKeys()
	renewed()
	m.End()
	listed := func() float64 {
		return rdb.ZScore(context.Background(), groupOf("m"), coretest.RecordOf("{m}:1")).Val()
	}
	place := listed()
	testkit.Eventually(t, coretest.Within, "the record to be listed further", func() bool { return listed() > place })
	_, err := locks.Once("{m}:2", core.WithQuota(1)).Begin(context.Background())
	coretest.WantErr(t, err, core.ErrTooManyKeys)
	if err := a.Complete(context.Background(), nil); err != nil {
		t.Error(err)
	}
}
