package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/lab/faults/worker"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestClassOfALoss: each way to lose a lease has its class, whatever core says in its text. Checkers that look for a class
// which no error has would find nothing.
func TestClassOfALoss(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	locks, err := core.New(server.Client(), core.WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() }) // whatever is left expires
	const ttl = 300 * time.Millisecond
	for want, lose := range map[string]struct {
		option core.LockOption
		do     func(*core.Lease)
	}{
		worker.Expired: {core.WithFixedTTL(ttl), func(*core.Lease) {}},
		worker.TooLong: {core.WithMaxHold(ttl), func(*core.Lease) {}},
		worker.Taken: {core.WithTTL(ttl), func(l *core.Lease) {
			if ok, err := locks.ForceUnlock(ctx, l.Name()); !ok || err != nil {
				t.Errorf("ForceUnlock = %v, %v", ok, err)
			}
		}},
	} {
		lease, err := locks.Mutex(want).Lock(ctx, lose.option)
		if err != nil {
			t.Fatal(err)
		}
		lose.do(lease)
		<-lease.Done()
		if got := worker.Class(context.Cause(lease.Context())); got != want {
			t.Errorf("%v is %q, want %q", context.Cause(lease.Context()), got, want)
		}
	}
	// A renewal without a reply until the end of the lease.
	lease, err := locks.Mutex("frozen").Lock(ctx, core.WithTTL(ttl))
	if err != nil {
		t.Fatal(err)
	}
	server.Pause()
	<-lease.Done()
	server.Resume()
	if got := worker.Class(context.Cause(lease.Context())); got != worker.Expired {
		t.Errorf("%v is %q, want %q", context.Cause(lease.Context()), got, worker.Expired)
	}
}

// TestClassOfAnUnlock: an unlock that finds the lock gone has another class than one that knows without Redis that the lease is over.
func TestClassOfAnUnlock(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb := server.Client()
	locks, err := core.New(rdb, core.WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	for want, end := range map[string]func(*core.Lease){
		"": func(*core.Lease) {},
		worker.NotHeld: func(*core.Lease) {
			if err := rdb.FlushAll(ctx).Err(); err != nil {
				t.Error(err)
			}
		},
		worker.Over: func(l *core.Lease) { <-l.Done() },
	} {
		lease, err := locks.Mutex("unlock "+want).Lock(ctx, core.WithFixedTTL(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		end(lease)
		if got := worker.Released(lease.Unlock(ctx), lease.Context()); got != want {
			t.Errorf("the unlock has class %q, want %q", got, want)
		}
	}
}
