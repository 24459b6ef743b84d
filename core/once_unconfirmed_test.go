package core_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestUnconfirmedEndsComeFirst: Redis is unreachable when runs have taken effect, for longer than their leases. The
// same client is asked for the same keys all the time, and runs none of them again.
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
			coretest.LoadOnce(t, server.Client())
			o := &absence{t: t, relay: relay, leave: sync.OnceFunc(func() { leave(relay) })}
			o.all.Add(outageKeys)
			away := coretest.NewClient(t, relay.Client(), core.WithTTL(time.Second))
			past := coretest.NewClient(t, server.Client())
			var runs sync.WaitGroup
			for i := range outageKeys {
				runs.Go(func() { o.runOnce(away.Once(fmt.Sprint("order", i)), past) })
			}
			runs.Wait()
			if n := o.effects.Load(); n != outageKeys {
				t.Errorf("%d effects of %d keys", n, outageKeys)
			}
			testkit.Eventually(t, coretest.Within, "all ends to be answered", func() bool { return core.UnconfirmedEnds(away) == 0 })
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

// runOnce has a key run, and asks for it again until Redis replies what has become of it.
func (o *absence) runOnce(once *core.Once, past *core.Client) {
	ctx := context.Background()
	run := func(context.Context) ([]byte, error) { o.effects.Add(1); return []byte("done"), nil }
	_, err := once.Do(ctx, func(ctx context.Context) ([]byte, error) {
		o.all.Done()
		o.all.Wait()
		o.leave()
		return run(ctx)
	})
	coretest.WantErr(o.t, err, core.ErrUnavailable)
	testkit.Eventually(o.t, coretest.Within, "the lease to expire", func() bool {
		return coretest.MustPeek(o.t, past.Once(once.Key())).State == core.StateAbandoned
	})
	if o.expired.Add(1) == outageKeys {
		o.relay.Heal()
	}
	testkit.Eventually(o.t, coretest.Within, "an answer", func() bool {
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		got, err := once.Do(ctx, run)
		if err == nil && (!got.Replayed || got.Attempt != 1 || string(got.Value) != "done") {
			o.t.Errorf("%s: %+v", once.Key(), got)
		}
		return err == nil
	})
}

// TestOvertakenEndIsRecordedLater: an end was not confirmed, and another attempt runs when it is sent again. What becomes of the
// other one decides.
func TestOvertakenEndIsRecordedLater(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb := server.Client()
	relay := server.Relay()
	locks, other := coretest.NewClient(t, relay.Client(), core.WithTTL(coretest.Long)), coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	for name, test := range map[string]struct {
		successor func(name string, b *core.Attempt) error
		recorded  bool // the end that was overtaken
	}{
		"withdrawn": {func(_ string, b *core.Attempt) error { return seal.AttemptOf(b).Withdraw(ctx) }, true},
		"released":  {func(_ string, b *core.Attempt) error { return b.Release(ctx) }, true},
		"crashed":   {func(name string, _ *core.Attempt) error { coretest.Abandon(t, rdb, name); return nil }, true},
		"completed": {func(_ string, b *core.Attempt) error { return b.Complete(ctx, []byte("other")) }, false},
		"held":      {func(_ string, b *core.Attempt) error { return b.Hold(ctx, "reason") }, false},
	} {
		a := coretest.MustBegin(t, locks.Once(name, core.WithFingerprint([]byte("print"))))
		coretest.Abandon(t, rdb, name)
		b := coretest.MustBegin(t, other.Once(name, core.WithNote("of the other")))
		relay.Drop(testkit.ToServer)
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		coretest.WantErr(t, a.Complete(short, []byte("done")), core.ErrUnavailable)
		cancel()
		calls := server.CommandStats()["evalsha"].Calls
		relay.Heal()
		testkit.Eventually(t, coretest.Within, "the end to meet the other attempt", func() bool {
			return server.CommandStats()["evalsha"].Calls > calls
		})
		if err := test.successor(name, b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !test.recorded {
			continue
		}
		if r := coretest.WantRecorded(t, other.Once(name), a); string(r.Value) != "done" || string(r.Fingerprint) != "print" || r.Note != "" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	testkit.Eventually(t, coretest.Within, "all ends to be answered", func() bool { return core.UnconfirmedEnds(locks) == 0 })
	coretest.WantState(t, other.Once("completed"), core.StateCompleted, 2)
	coretest.WantState(t, other.Once("held"), core.StateUnknown, 2)
}
