package once_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// runOnce begins a run of the Once "name" that does not end by itself.
func runOnce(rdb *redis.Client, say func(any), policy core.FailurePolicy, ttl time.Duration) error {
	locks, err := core.New(rdb, core.WithTTL(ttl))
	if err != nil {
		return err
	}
	defer locks.Close()
	_, err = locks.Once("name", core.WithFailurePolicy(policy)).Do(context.Background(),
		func(ctx context.Context) ([]byte, error) {
			token, _ := core.TokenFrom(ctx)
			say(coretest.Granted{Token: token})
			<-ctx.Done()
			return nil, context.Cause(ctx)
		})
	return err
}

// TestKilledRun kills a process in the middle of a run. What another process gets once the lease is over, the failure
// policy of the dead one says.
func TestKilledRun(t *testing.T) {
	t.Parallel()
	for policy := range core.HoldFailures + 1 {
		t.Run([]string{"retry", "hold"}[policy], func(t *testing.T) {
			t.Parallel()
			const ttl = 4 * time.Second
			server := testkit.Start(t)
			dying := coretest.StartWorker(t, fmt.Sprint("once ", server.Network(), " ", server.Addr(), " ", int(policy), " ", int64(ttl)))
			first := dying.Entered(t)
			once := coretest.NewClient(t, server.Client()).Once("name", core.WithWait(coretest.Within))
			if r := coretest.WantState(t, once, core.StateRunning, 1); r.Token != first.Token || r.Lease > ttl {
				t.Errorf("%+v", r)
			}
			dying.Kill(t)
			coretest.WantState(t, once, core.StateRunning, 1)
			deadline := leaseEnd(t, server.Client(), "name")
			a, err := once.Begin(context.Background())
			if now := coretest.RedisTime(t, server.Client()); deadline == 0 || now.UnixMilli() < deadline {
				t.Errorf("answered at %v, though the lease lasts until %v", now, time.UnixMilli(deadline))
			}
			if policy == core.HoldFailures {
				coretest.WantErr(t, err, core.ErrOutcomeUnknown)
				var unknown *core.OutcomeUnknownError
				if !errors.As(err, &unknown) || unknown.Record.Token != first.Token || !unknown.Record.Ended.IsZero() {
					t.Errorf("%v", err)
				}
				coretest.WantState(t, once, core.StateUnknown, 1)
				return
			}
			if err != nil || a.Number() != 2 || a.Token() <= first.Token {
				t.Fatalf("%v", err)
			}
			if err := a.Complete(context.Background(), nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOnceClosed: the attempts end, what they have claimed is left to their policy, and no call works any more.
func TestOnceClosed(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	for policy, want := range []core.State{core.StateAbandoned, core.StateUnknown} {
		name := string(want)
		locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
		once := locks.Once(name, core.WithFailurePolicy(core.FailurePolicy(policy)))
		a := coretest.MustBegin(t, once)
		if err := locks.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		coretest.WaitFor(t, a.Context().Done(), "the attempt to end")
		coretest.WantErr(t, context.Cause(a.Context()), core.ErrClosed)
		_, begin := once.Begin(ctx)
		_, do := once.Do(ctx, coretest.Answers(nil, ""))
		_, peek := once.Peek(ctx)
		for _, err := range []error{
			begin, do, peek, coretest.ForgetNow(ctx, once), coretest.ResolveNow(ctx, once, nil), a.Declare(ctx, core.StateUnknown),
			a.Complete(ctx, nil), a.Release(ctx), a.Hold(ctx, ""),
		} {
			coretest.WantErr(t, err, core.ErrClosed)
		}
		other := coretest.NewClient(t, rdb).Once(name)
		coretest.WantState(t, other, core.StateRunning, 1)
		coretest.Abandon(t, rdb, name)
		coretest.WantState(t, other, want, 1)
	}
}

// TestCloseDuringARun: a run whose client is closed fails, with the reason.
func TestCloseDuringARun(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	_, err := holding(locks, "name").Do(context.Background(), func(ctx context.Context) ([]byte, error) {
		_ = locks.Close()
		<-ctx.Done()
		coretest.WantErr(t, context.Cause(ctx), core.ErrClosed)
		return nil, errors.New("stopped")
	})
	coretest.WantErr(t, err, core.ErrClosed)
	got, err := locks.Once("other").Do(context.Background(), coretest.Answers(nil, ""))
	if coretest.WantErr(t, err, core.ErrClosed); got.Value != nil {
		t.Errorf("%+v", got)
	}
	coretest.Abandon(t, rdb, "name")
	coretest.WantState(t, coretest.NewClient(t, rdb).Once("name"), core.StateUnknown, 1)
}

// TestCloseWaitsForComplete, and for one that continues in the background.
func TestCloseWaitsForComplete(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb, relay := server.Client(), server.Relay()
	coretest.LoadOnce(t, rdb)
	locks := coretest.NewClient(t, relay.Client(), core.WithTTL(coretest.Long))
	a := coretest.MustBegin(t, locks.Once("name"))
	b := coretest.MustBegin(t, locks.Once("later"))
	unheard := make(chan struct{})
	coretest.Nth(relay, coretest.RecordOf("name"), 1, func() { relay.Hold(testkit.ToServer); close(unheard) })
	completed, closed := make(chan error, 1), make(chan error, 1)
	go func() { completed <- a.Complete(ctx, nil) }()
	coretest.WaitFor(t, unheard, "the request")
	ended, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	coretest.WantErr(t, b.Complete(ended, nil), core.ErrUnavailable)
	go func() { closed <- locks.Close() }()
	testkit.Eventually(t, coretest.Within, "Close to begin", func() bool {
		_, err := locks.Once("other").Peek(ended)
		return errors.Is(err, core.ErrClosed)
	})
	relay.Deliver()
	if err := coretest.Receive(t, completed); err != nil {
		t.Errorf("Complete: %v", err)
	}
	if err := coretest.Receive(t, closed); err != nil {
		t.Errorf("Close: %v", err)
	}
	other := coretest.NewClient(t, rdb)
	coretest.WantState(t, other.Once("name"), core.StateCompleted, 1)
	coretest.WantState(t, other.Once("later"), core.StateCompleted, 1)
}
