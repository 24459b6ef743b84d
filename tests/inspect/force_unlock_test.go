package inspect_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestRenewalOfASuccessorsLock: a lease that was forced must not renew, nor live on, when another holds the lock.
func TestRenewalOfASuccessorsLock(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks, other := coretest.NewClient(t, rdb), coretest.NewClient(t, rdb)
	old := coretest.MustLock(t, locks.Mutex("name"), core.WithTTL(coretest.Long))
	if forced, err := other.ForceUnlock(ctx, "name"); !forced || err != nil {
		t.Fatalf("ForceUnlock = %v, %v", forced, err)
	}
	next := coretest.MustLock(t, other.Mutex("name"), core.WithFixedTTL(coretest.Long))
	coretest.WantErr(t, old.Extend(ctx, 2*coretest.Long), core.ErrNotHeld)
	coretest.WaitFor(t, old.Done(), "the former holder's lease to end")
	coretest.WantErr(t, context.Cause(old.Context()), core.ErrLeaseLost)
	if left := rdb.PTTL(ctx, "lock:name").Val(); left > coretest.Long {
		t.Errorf("the successor's lock was prolonged to %v", left)
	}
	coretest.Unlock(t, next)
}

// TestForceUnlockTwice: a repetition spares the lock's next holder and says what the first run did; the waiters
// are told by message.
func TestForceUnlockTwice(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb, relay := server.Client(), server.Relay()
	admin, locks := coretest.NewClient(t, relay.Client()), coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	if _, err := admin.ForceUnlock(ctx, "warm"); err != nil {
		t.Fatal(err)
	}
	coretest.MustLock(t, locks.Mutex("name"))
	told := coretest.Subscribe(t, rdb, "redisson_lock__channel:{lock:name}")
	relay.LoseReplies("forced:{lock:name}", 1, testkit.Closed)
	var next *core.Lease
	coretest.BeforeRepetition(relay, "forced:{lock:name}", func() { next, _ = locks.Mutex("name").TryLock(ctx) })
	if forced, err := admin.ForceUnlock(ctx, "name"); !forced || err != nil {
		t.Errorf("ForceUnlock = %v, %v", forced, err)
	}
	if got := told(); got != "0" {
		t.Errorf("message %q, want 0", got)
	}
	if next == nil {
		t.Fatal("nobody took the lock between the two runs")
	}
	coretest.Unlock(t, next)

	relay.LoseReplies("forced:{lock:free}", 1, testkit.Closed)
	coretest.BeforeRepetition(relay, "forced:{lock:free}", func() { next, _ = locks.Mutex("free").TryLock(ctx) })
	if forced, err := admin.ForceUnlock(ctx, "free"); forced || err != nil {
		t.Errorf("ForceUnlock of a free lock = %v, %v", forced, err)
	}
	coretest.Unlock(t, next)
}

// TestLossFoundByUnlock: a lock that was forced is reported when Unlock finds out, and Do tells its caller.
func TestLossFoundByUnlock(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	var lost atomic.Int32
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithHooks(core.Hooks{Lost: func(context.Context, core.Lost) { lost.Add(1) }}))
	err := locks.Mutex("name").Do(ctx, func(context.Context) error {
		_, err := locks.ForceUnlock(ctx, "name")
		return err
	})
	coretest.WantErr(t, err, core.ErrLeaseLost)
	if lost.Load() != 1 {
		t.Errorf("%d losses told", lost.Load())
	}
}

// TestForceUnlockOfData: a hash that is no lock stays, whatever its fields are, and so does one with many.
func TestForceUnlockOfData(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithPrefix(""))
	many := make([]any, 0, 4000)
	for i := range 2000 {
		many = append(many, fmt.Sprint("field", i), i)
	}
	for name, fields := range map[string][]any{
		"user":     {"name", "Ada", "iban", "DE02"},
		"settings": {"mode", "dark"},
		"counter":  {"visits", "7"},
		"many":     many,
	} {
		rdb.HSet(ctx, name, fields...)
		_, err := locks.ForceUnlock(ctx, name)
		coretest.WantErr(t, err, core.ErrWrongType)
		_, err = locks.ForceUnlockHolder(ctx, name, core.Holder{Owner: "name"})
		coretest.WantErr(t, err, core.ErrWrongType)
		if n := rdb.HLen(ctx, name).Val(); int(n) != len(fields)/2 {
			t.Errorf("%s has %d fields", name, n)
		}
	}
	rdb.HSet(ctx, "rlock", "6685f53b-c748-4006-84e3-1eb45a6fa677:12", "1")
	if forced, err := locks.ForceUnlock(ctx, "rlock"); err != nil || !forced {
		t.Errorf("a lock of Redisson: %v, %v", forced, err)
	}
}
