package election_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// tryDoLater calls TryDo in another goroutine. The context of the function arrives on working. The function returns what is
// sent on answer, even if its context has ended.
func tryDoLater(ctx context.Context, e *core.Election) (working <-chan context.Context, answer chan<- error, done <-chan error) {
	w, a, d := make(chan context.Context, 1), make(chan error), make(chan error, 1)
	go func() {
		d <- e.TryDo(ctx, func(ctx context.Context) error {
			w <- ctx
			return <-a
		})
	}()
	return w, a, d
}

// TestElectionTryDo calls functions only while this Election leads, with the caller's context and the token of the term.
func TestElectionTryDo(t *testing.T) {
	t.Parallel()
	type key struct{}
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), key{}, "value"))
	defer cancel()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	e := locks.Election("name")
	never := func(context.Context) error { t.Error("called without leadership"); return nil }
	coretest.WantErr(t, e.TryDo(ctx, never), core.ErrNotLeader)
	lead := coretest.MustCampaign(t, e)
	coretest.WantErr(t, locks.Election("name").TryDo(ctx, never), core.ErrNotLeader)
	coretest.WantErr(t, e.TryDo(ctx, nil), core.ErrInvalidOption)
	coretest.WantErr(t, locks.Election("").TryDo(ctx, never), core.ErrInvalidName)

	working, answer, done := tryDoLater(ctx, e)
	work := awaitContext(t, working)
	if termOf(t, work) != lead.Term() || work.Value(key{}) != "value" || work.Err() != nil {
		t.Errorf("the context has token %d and value %v, and ended with %v", termOf(t, work), work.Value(key{}), work.Err())
	}
	cancel()
	coretest.WaitFor(t, work.Done(), "the end of the caller's context")
	mine := errors.New("mine")
	answer <- mine
	if err := coretest.Receive(t, done); err != mine {
		t.Errorf("TryDo returned %v", err)
	}
	coretest.Resign(t, lead)
	coretest.WantErr(t, e.TryDo(ctx, never), core.ErrNotLeader)
}

// TestElectionTryDoLoss force-releases a leader's lock during its work. The context of the work ends, the error says why, and Run
// campaigns again only after the work has returned.
func TestElectionTryDoLoss(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(3*time.Second)) // a forced loss is told after a third of it
	e := locks.Election("name")
	led, answer, done := runLater(ctx, e)
	leading := awaitContext(t, led)
	working, finish, worked := tryDoLater(context.Background(), e)
	work := awaitContext(t, working)
	if _, err := coretest.NewClient(t, rdb).ForceUnlock(ctx, "name"); err != nil {
		t.Fatal(err)
	}
	coretest.WaitFor(t, work.Done(), "the work to be told")
	coretest.WantErr(t, context.Cause(work), core.ErrLeaseLost)
	answer <- nil
	coretest.WantErr(t, e.TryDo(ctx, func(context.Context) error { return nil }), core.ErrNotLeader)
	info, err := locks.Inspect(ctx, "name")
	if err != nil || len(info.Holders)+len(info.Queue) > 0 {
		t.Errorf("it campaigns while its work runs: %+v, %v", info, err)
	}
	finish <- nil
	coretest.WantErr(t, coretest.Receive(t, worked), core.ErrLeaseLost)
	if again := awaitContext(t, led); termOf(t, again) <= termOf(t, leading) {
		t.Errorf("term %d came after %d", termOf(t, again), termOf(t, leading))
	}
	answer <- nil
	if err := coretest.Receive(t, done); err != nil {
		t.Errorf("Run returned %v", err)
	}
}

// TestElectionTryDoOutlivesRun: the end of Run's function ends the work, and no candidate wins before the work has returned.
func TestElectionTryDoOutlivesRun(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	e := locks.Election("name")
	led, answer, done := runLater(context.Background(), e)
	awaitContext(t, led)
	working, finish, worked := tryDoLater(context.Background(), e)
	work := awaitContext(t, working)
	next := coretest.CampaignLater(t, locks.Election("name"))
	coretest.AwaitQueue(t, locks, "name", 1)
	answer <- nil
	coretest.WaitFor(t, work.Done(), "the work to be told")
	coretest.WantErr(t, context.Cause(work), core.ErrNotHeld)
	coretest.WantErr(t, e.IsLeader(context.Background()), core.ErrNotLeader)
	coretest.WantErr(t, e.TryDo(context.Background(), func(context.Context) error { return nil }), core.ErrNotLeader)
	if info, err := locks.Inspect(context.Background(), "name"); err != nil || len(info.Queue) != 1 {
		t.Errorf("the next leader has won before the work has returned: %+v, %v", info, err)
	}
	finish <- nil
	if err := coretest.Receive(t, worked); err != nil {
		t.Errorf("TryDo returned %v, though its lead lasted", err)
	}
	coretest.Resign(t, coretest.AwaitLead(t, next))
	if err := coretest.Receive(t, done); err != nil {
		t.Errorf("Run returned %v", err)
	}
}

// TestElectionTryDoEndsFirst: the context of the work has ended when Redis is notified of a resignation, and the error says so.
func TestElectionTryDoEndsFirst(t *testing.T) {
	t.Parallel()
	var work context.Context
	asked := false
	hooks := core.Hooks{ReleaseStart: func(ctx context.Context, _ core.ReleaseStart) context.Context {
		asked = true
		if work.Err() == nil {
			t.Error("the work continues while leadership is given up")
		}
		return ctx
	}}
	e := coretest.NewClient(t, testkit.Start(t).Client(), core.WithHooks(hooks)).Election("name")
	lead := coretest.MustCampaign(t, e)
	working, finish, worked := tryDoLater(context.Background(), e)
	work = awaitContext(t, working)
	coretest.Resign(t, lead)
	finish <- nil
	coretest.WantErr(t, coretest.Receive(t, worked), core.ErrNotHeld)
	if !asked {
		t.Error("no hook was called")
	}
}

// TestElectionTryDoPanics: a call that panics does not count any more.
func TestElectionTryDoPanics(t *testing.T) {
	t.Parallel()
	e := coretest.NewClient(t, testkit.Start(t).Client()).Election("name")
	err := e.Run(context.Background(), func(ctx context.Context) error {
		defer func() {
			if p := recover(); p != "mine" {
				t.Errorf("the panic is %v", p)
			}
		}()
		return e.TryDo(ctx, func(context.Context) error { panic("mine") })
	})
	if err != nil {
		t.Errorf("Run returned %v", err)
	}
}

// TestElectionTryDoAtChanges lets eight goroutines work while two candidates take turns: no work of two terms overlaps.
func TestElectionTryDoAtChanges(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	server := testkit.Start(t)
	var busy [2]atomic.Int32
	var worked atomic.Int64
	var all sync.WaitGroup
	for i := range busy {
		e := coretest.NewClient(t, server.Client()).Election("name")
		all.Go(func() {
			for ctx.Err() == nil {
				_ = e.Run(ctx, func(context.Context) error {
					for before := worked.Load(); ctx.Err() == nil && worked.Load() < before+50; {
						time.Sleep(time.Millisecond)
					}
					return nil
				})
			}
		})
		for range 4 {
			all.Go(func() {
				for ctx.Err() == nil {
					err := e.TryDo(ctx, func(context.Context) error {
						busy[i].Add(1)
						defer busy[i].Add(-1)
						worked.Add(1)
						if busy[1-i].Load() > 0 {
							t.Error("work of two leaders at a time")
						}
						return nil
					})
					if err != nil {
						time.Sleep(time.Millisecond)
					}
				}
			})
		}
	}
	testkit.Eventually(t, time.Minute, "twenty terms", func() bool { return worked.Load() > 20*50 })
	cancel()
	all.Wait()
}
