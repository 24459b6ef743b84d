package core_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestUnconfirmedEndsComeFirst: Redis is away when runs have taken effect, for longer than their leases. The same client is asked
// for the same keys all the time, and runs none of them again.
func TestUnconfirmedEndsComeFirst(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*testkit.Relay){
		"refused": func(r *testkit.Relay) { r.Refuse(true); r.Reset() },
		"silent":  func(r *testkit.Relay) { r.Drop(testkit.ToServer) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testkit.Start(t)
			relay := server.Relay()
			loadOnce(t, server.Client())
			o := &absence{t: t, relay: relay, leave: sync.OnceFunc(func() { leave(relay) })}
			o.all.Add(outageKeys)
			away := newClient(t, relay.Client(), core.WithTTL(time.Second))
			past := newClient(t, server.Client())
			var runs sync.WaitGroup
			for i := range outageKeys {
				runs.Go(func() { o.runOnce(away.Once(fmt.Sprint("order", i)), past) })
			}
			runs.Wait()
			if n := o.effects.Load(); n != outageKeys {
				t.Errorf("%d effects of %d keys", n, outageKeys)
			}
			testkit.Eventually(t, within, "all ends to be answered", func() bool { return core.UnconfirmedEnds(away) == 0 })
		})
	}
}

const outageKeys = 20

// absence is a time without Redis. It begins when all keys are running, and ends when all their leases have expired.
type absence struct {
	t       *testing.T
	relay   *testkit.Relay
	leave   func()
	all     sync.WaitGroup // of the keys: done when they run
	expired atomic.Int32
	effects atomic.Int32
}

// runOnce has a key run, and asks for it again until Redis says what has become of it.
func (o *absence) runOnce(once *core.Once, past *core.Client) {
	ctx := context.Background()
	run := func(context.Context) ([]byte, error) { o.effects.Add(1); return []byte("done"), nil }
	_, err := once.Do(ctx, func(ctx context.Context) ([]byte, error) {
		o.all.Done()
		o.all.Wait()
		o.leave()
		return run(ctx)
	})
	wantErr(o.t, err, core.ErrUnavailable)
	testkit.Eventually(o.t, within, "the lease to expire", func() bool {
		return mustPeek(o.t, past.Once(once.Key())).State == core.StateAbandoned
	})
	if o.expired.Add(1) == outageKeys {
		o.relay.Heal()
	}
	testkit.Eventually(o.t, within, "an answer", func() bool {
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		got, err := once.Do(ctx, run)
		if err == nil && (!got.Replayed || got.Attempt != 1 || string(got.Value) != "done") {
			o.t.Errorf("%s: %+v", once.Key(), got)
		}
		return err == nil
	})
}

// TestEndBehindABegin: the end of an attempt without a lease is not confirmed when another begin of the same client is granted,
// whose answer is late. The begin is taken back.
func TestEndBehindABegin(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, end := range map[string]func(context.Context, *core.Attempt) error{
		"complete": func(ctx context.Context, a *core.Attempt) error { return a.Complete(ctx, []byte("done")) },
		"hold":     func(ctx context.Context, a *core.Attempt) error { return a.Hold(ctx, "reason") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testkit.Start(t)
			relay := server.Relay()
			loadOnce(t, server.Client())
			past, rdb := newClient(t, server.Client()).Once("name"), relay.Client()
			once := newClient(t, rdb, core.WithTTL(long)).Once("name")
			a := mustBegin(t, once)
			abandon(t, server.Client(), "name")
			connect(rdb, 6)
			relay.Hold(testkit.ToClient)
			begun := make(chan error, 1)
			go func() { _, err := once.Begin(ctx); begun <- err }()
			testkit.Eventually(t, within, "the grant", func() bool { return mustPeek(t, past).Attempt == 2 })
			short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			wantErr(t, end(short, a), core.ErrUnavailable)
			relay.Deliver()
			err := receive(t, begun)
			if r := wantRecorded(t, past, a); r.State == core.StateCompleted {
				wantErr(t, err, core.ErrCompleted)
			} else {
				wantErr(t, err, core.ErrOutcomeUnknown)
			}
		})
	}
}

// connect leaves so many connections in a pool. A new one would wait for the answers to its first commands.
func connect(rdb *redis.Client, connections int) {
	var all sync.WaitGroup
	for range connections {
		all.Go(func() { rdb.Do(context.Background(), "BLPOP", "nothing", "0.2") })
	}
	all.Wait()
}

// wantRecorded waits until the record has the end of an attempt.
func wantRecorded(t *testing.T, o *core.Once, a *core.Attempt) core.Record {
	t.Helper()
	var r core.Record
	testkit.Eventually(t, within, "the end to be recorded", func() bool {
		r = mustPeek(t, o)
		return r.Token == a.Token() && (r.State == core.StateCompleted || r.State == core.StateUnknown)
	})
	if r.Attempt != a.Number() {
		t.Errorf("attempt %d, want %d", r.Attempt, a.Number())
	}
	return r
}

// TestOvertakenEndIsRecordedLater: an end was not confirmed, and another attempt runs when it is sent again. What becomes of the
// other one decides.
func TestOvertakenEndIsRecordedLater(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb := server.Client()
	relay := server.Relay()
	locks, other := newClient(t, relay.Client(), core.WithTTL(long)), newClient(t, rdb, core.WithTTL(long))
	for name, test := range map[string]struct {
		successor func(name string, b *core.Attempt) error
		recorded  bool // the end that was overtaken
	}{
		"withdrawn": {func(_ string, b *core.Attempt) error { return b.Withdraw(ctx) }, true},
		"released":  {func(_ string, b *core.Attempt) error { return b.Release(ctx) }, true},
		"crashed":   {func(name string, _ *core.Attempt) error { abandon(t, rdb, name); return nil }, true},
		"completed": {func(_ string, b *core.Attempt) error { return b.Complete(ctx, []byte("other")) }, false},
		"held":      {func(_ string, b *core.Attempt) error { return b.Hold(ctx, "reason") }, false},
	} {
		a := mustBegin(t, locks.Once(name, core.WithFingerprint([]byte("print"))))
		abandon(t, rdb, name)
		b := mustBegin(t, other.Once(name, core.WithNote("of the other")))
		relay.Drop(testkit.ToServer)
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		wantErr(t, a.Complete(short, []byte("done")), core.ErrUnavailable)
		cancel()
		calls := server.CommandStats()["evalsha"].Calls
		relay.Heal()
		testkit.Eventually(t, within, "the end to meet the other attempt", func() bool {
			return server.CommandStats()["evalsha"].Calls > calls
		})
		if err := test.successor(name, b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !test.recorded {
			continue
		}
		if r := wantRecorded(t, other.Once(name), a); string(r.Value) != "done" || string(r.Fingerprint) != "print" || r.Note != "" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	testkit.Eventually(t, within, "all ends to be answered", func() bool { return core.UnconfirmedEnds(locks) == 0 })
	wantState(t, other.Once("completed"), core.StateCompleted, 2)
	wantState(t, other.Once("held"), core.StateUnknown, 2)
}
