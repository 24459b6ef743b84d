package lease_test

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

var late = flag.Int("late", 0, "how often TestLateReturns lets each kind of context end on a frozen server")

// TestLateReturns measures how much later than their contexts calls return when the server has stopped in between: it has
// just answered quickly, so it is expected to do so again.
func TestLateReturns(t *testing.T) {
	if *late == 0 {
		t.Skip("this takes a minute; ask for it with -late")
	}
	server := testkit.Start(t)
	rdb, admin := server.Client(), server.Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	lock := func(ctx context.Context) error { _, err := locks.Mutex("name").Lock(ctx); return err }
	fair := func(ctx context.Context) error { _, err := locks.Fair("other").Lock(ctx); return err }
	var bare []time.Duration // what the machine adds
	for _, c := range []struct {
		what   string
		end    func() (context.Context, context.CancelFunc)
		cut    bool // all connections, so that a new one is made
		unlock bool
		call   func(ctx context.Context) error
	}{
		{"Lock with a deadline", endsByTime, false, false, lock},
		{"Lock with a deadline, connections gone", endsByTime, true, false, lock},
		{"Lock of a Fair with a deadline", endsByTime, false, false, fair},
		{"Unlock with a deadline", endsByTime, false, true, nil},
		{"Lock that is cancelled", endsByCancel, false, false, lock},
		{"Lock that is cancelled, connections gone", endsByCancel, true, false, lock},
		{"Unlock that is cancelled", endsByCancel, false, true, nil},
	} {
		var times []time.Duration
		for range *late {
			lease := coretest.MustLock(t, locks.Mutex("held"))
			if !c.unlock {
				coretest.Unlock(t, lease)
			}
			if c.cut {
				killConnections(t, admin)
			}
			server.Pause()
			took, others := returnsLate(t, c.end, either(c.call, lease.Unlock))
			times, bare = append(times, took), append(bare, others)
			server.Resume()
			coretest.Gone(t, admin, "lock:name")
			coretest.Gone(t, admin, "lock:held")
		}
		logLate(t, c.what, times)
	}
	logLate(t, "A goroutine that only waits for a deadline", slices.DeleteFunc(bare, func(d time.Duration) bool { return d < 0 }))
}

// TestLateLosses measures how much later than ValidUntil holders are told that their lease is over, while the server does
// not answer.
func TestLateLosses(t *testing.T) {
	if *late == 0 {
		t.Skip("this takes a minute; ask for it with -late")
	}
	server := testkit.Start(t)
	locks := coretest.NewClient(t, server.Client(), core.WithTTL(300*time.Millisecond), core.WithLogger(nil))
	var times []time.Duration
	for range *late {
		lease := coretest.MustLock(t, locks.Mutex("name"), core.WithWait(coretest.Within))
		server.Pause()
		coretest.WaitFor(t, lease.Done(), "the lease to end")
		times = append(times, time.Since(lease.ValidUntil()))
		server.Resume()
	}
	logLate(t, "A loss", times)
}

func logLate(t *testing.T, what string, times []time.Duration) {
	t.Helper()
	slices.Sort(times)
	at := func(share float64) time.Duration {
		return times[int(share*float64(len(times)-1))].Round(10 * time.Microsecond)
	}
	t.Logf("%-42s %d times, median %v, 99%% within %v, at most %v", what, len(times), at(0.5), at(0.99), at(1))
}

func either(call, otherwise func(context.Context) error) func(context.Context) error {
	if call == nil {
		return otherwise
	}
	return call
}

// endsByTime and endsByCancel end at any time up to three times the limit of the direct path of a command.
func endsByTime() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), time.Millisecond+rand.N(300*time.Millisecond))
}

func endsByCancel() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(time.Millisecond+rand.N(300*time.Millisecond), cancel)
	return ctx, cancel
}

// returnsLate returns how much later than its context a call returns, and how much later than its deadline, if it has
// one, a goroutine continues that waits for nothing else.
func returnsLate(
	t *testing.T, end func() (context.Context, context.CancelFunc), call func(context.Context) error,
) (took, bare time.Duration) {
	t.Helper()
	ctx, cancel := end()
	defer cancel()
	ended := make(chan time.Time, 1)
	context.AfterFunc(ctx, func() { ended <- time.Now() })
	err := call(ctx)
	back := time.Now()
	if err == nil || ctx.Err() == nil && !errors.Is(err, core.ErrUnavailable) {
		t.Fatalf("a frozen server has answered: %v", err)
	}
	at := <-ended
	if limit, ok := ctx.Deadline(); ok {
		return back.Sub(limit), at.Sub(limit)
	}
	return back.Sub(at), -1
}

func killConnections(t *testing.T, admin *redis.Client) {
	t.Helper()
	if err := admin.ClientKillByFilter(context.Background(), "TYPE", "normal", "SKIPME", "yes").Err(); err != nil {
		t.Fatal(err)
	}
}
