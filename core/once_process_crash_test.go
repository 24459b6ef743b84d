package core_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
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
			say(granted{Token: token})
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
			dying := startWorker(t, fmt.Sprint("once ", server.Network(), " ", server.Addr(), " ", int(policy), " ", int64(ttl)))
			first := dying.entered(t)
			once := newClient(t, server.Client()).Once("name", core.WithWait(within))
			if r := wantState(t, once, core.StateRunning, 1); r.Token != first.Token || r.Lease > ttl {
				t.Errorf("%+v", r)
			}
			dying.kill(t)
			wantState(t, once, core.StateRunning, 1)
			deadline := leaseEnd(t, server.Client(), "name")
			a, err := once.Begin(context.Background())
			if now := redisTime(t, server.Client()); deadline == 0 || now.UnixMilli() < deadline {
				t.Errorf("answered at %v, though the lease lasts until %v", now, time.UnixMilli(deadline))
			}
			if policy == core.HoldFailures {
				wantErr(t, err, core.ErrOutcomeUnknown)
				var unknown *core.OutcomeUnknownError
				if !errors.As(err, &unknown) || unknown.Record.Token != first.Token || !unknown.Record.Ended.IsZero() {
					t.Errorf("%v", err)
				}
				wantState(t, once, core.StateUnknown, 1)
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
		locks := newClient(t, rdb, core.WithTTL(long))
		once := locks.Once(name, core.WithFailurePolicy(core.FailurePolicy(policy)))
		a := mustBegin(t, once)
		if err := locks.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		waitFor(t, a.Done(), "the attempt to end")
		wantErr(t, context.Cause(a.Context()), core.ErrClosed)
		_, begin := once.Begin(ctx)
		_, do := once.Do(ctx, answers(nil, ""))
		_, peek := once.Peek(ctx)
		for _, err := range []error{
			begin, do, peek, forgetNow(ctx, once), resolveNow(ctx, once, nil), a.Declare(ctx, core.StateUnknown),
			a.Complete(ctx, nil), a.Release(ctx), a.Hold(ctx, ""),
		} {
			wantErr(t, err, core.ErrClosed)
		}
		other := newClient(t, rdb).Once(name)
		wantState(t, other, core.StateRunning, 1)
		abandon(t, rdb, name)
		wantState(t, other, want, 1)
	}
}

// TestCloseDuringARun: a run whose client is closed fails, with the reason.
func TestCloseDuringARun(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := newClient(t, rdb, core.WithTTL(long))
	_, err := holding(locks, "name").Do(context.Background(), func(ctx context.Context) ([]byte, error) {
		_ = locks.Close()
		<-ctx.Done()
		wantErr(t, context.Cause(ctx), core.ErrClosed)
		return nil, errors.New("stopped")
	})
	wantErr(t, err, core.ErrClosed)
	got, err := locks.Once("other").Do(context.Background(), answers(nil, ""))
	if wantErr(t, err, core.ErrClosed); got.Value != nil {
		t.Errorf("%+v", got)
	}
	abandon(t, rdb, "name")
	wantState(t, newClient(t, rdb).Once("name"), core.StateUnknown, 1)
}

// TestCloseWaitsForComplete, and for one that goes on in the background.
func TestCloseWaitsForComplete(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb, relay := server.Client(), server.Relay()
	loadOnce(t, rdb)
	locks := newClient(t, relay.Client(), core.WithTTL(long))
	a := mustBegin(t, locks.Once("name"))
	b := mustBegin(t, locks.Once("later"))
	unheard := make(chan struct{})
	nth(relay, recordOf("name"), 1, func() { relay.Hold(testkit.ToServer); close(unheard) })
	completed, closed := make(chan error, 1), make(chan error, 1)
	go func() { completed <- a.Complete(ctx, nil) }()
	waitFor(t, unheard, "the request")
	ended, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	wantErr(t, b.Complete(ended, nil), core.ErrUnavailable)
	go func() { closed <- locks.Close() }()
	testkit.Eventually(t, within, "Close to begin", func() bool {
		_, err := locks.Once("other").Peek(ended)
		return errors.Is(err, core.ErrClosed)
	})
	relay.Deliver()
	if err := receive(t, completed); err != nil {
		t.Errorf("Complete: %v", err)
	}
	if err := receive(t, closed); err != nil {
		t.Errorf("Close: %v", err)
	}
	other := newClient(t, rdb)
	wantState(t, other.Once("name"), core.StateCompleted, 1)
	wantState(t, other.Once("later"), core.StateCompleted, 1)
}
