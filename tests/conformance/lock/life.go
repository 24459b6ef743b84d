package lockconformance

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

var lifeTests = map[string]func(*testing.T, Subject){
	"DoRunsUnderTheLock":      doRunsUnderTheLock,
	"DoReleasesOnPanic":       doReleasesOnPanic,
	"DoTellsOfTheLoss":        doTellsOfTheLoss,
	"DoEndsWithItsContext":    doEndsWithItsContext,
	"TryDoDoesNotWait":        tryDoDoesNotWait,
	"OptionsMayBeUsedAgain":   optionsMayBeUsedAgain,
	"LeaseMayBeSharedByTasks": leaseMayBeSharedByTasks,
}

func doRunsUnderTheLock(t *testing.T, s Subject) {
	w := newWorld(t, s)
	l := w.process(core.WithTTL(long)).lock("name")
	failure := errors.New("failure")
	err := l.Do(context.Background(), func(ctx context.Context) error {
		w.held("name")
		token, ok := core.TokenFrom(ctx)
		if !ok || token <= 0 {
			t.Errorf("TokenFrom = %d, %v", token, ok)
		}
		return l.Do(ctx, func(ctx context.Context) error { // enters again
			if inner, _ := core.TokenFrom(ctx); inner != token {
				t.Errorf("inner token %d, outer %d", inner, token)
			}
			return failure
		})
	})
	w.wantErr(err, failure)
	w.free("name")
}

func doReleasesOnPanic(t *testing.T, s Subject) {
	w := newWorld(t, s)
	l := w.process(core.WithTTL(long)).lock("name")
	func() {
		defer func() {
			if got := recover(); got != "panic" {
				t.Errorf("recovered %v", got)
			}
		}()
		_ = l.Do(context.Background(), func(context.Context) error { panic("panic") })
	}()
	w.free("name")
}

func doTellsOfTheLoss(t *testing.T, s Subject) {
	w := newOwnWorld(t, s)
	l := w.process().lock("name")
	err := l.Do(context.Background(), func(ctx context.Context) error {
		w.restart()
		wait(t, ctx.Done(), "the context to end")
		w.wantErr(context.Cause(ctx), core.ErrLeaseLost)
		return nil
	}, core.WithTTL(3*time.Second)) // a slow machine has the time to get a lease of a Redlock
	w.wantErr(err, core.ErrLeaseLost)
}

func doEndsWithItsContext(t *testing.T, s Subject) {
	w := newWorld(t, s)
	ctx, cancel := context.WithCancel(context.Background())
	err := w.process(core.WithTTL(long)).lock("name").Do(ctx, func(ctx context.Context) error {
		cancel()
		wait(t, ctx.Done(), "the context to end")
		w.held("name") // until the function has returned
		return ctx.Err()
	})
	w.wantErr(err, context.Canceled)
	w.free("name")
}

func tryDoDoesNotWait(t *testing.T, s Subject) {
	w := newWorld(t, s)
	w.must(w.process().lock("name").Lock(context.Background(), core.WithTTL(long)))
	err := w.process().rival("name").TryDo(context.Background(), func(context.Context) error {
		t.Error("ran without the lock")
		return nil
	})
	w.wantErr(err, core.ErrNotAcquired)
}

// optionsMayBeUsedAgain shares options, which must not carry state from one call to the next.
func optionsMayBeUsedAgain(t *testing.T, s Subject) {
	w := newWorld(t, s)
	ctx := context.Background()
	lease := w.must(w.process().lock("name").Lock(ctx, core.WithTTL(long)))
	p := w.process()
	opts := []core.LockOption{core.WithWait(30 * time.Millisecond), core.WithTTL(long)}
	for range 3 {
		began := time.Now()
		_, err := p.rival("name", opts...).Lock(ctx, opts...)
		w.wantErr(err, core.ErrNotAcquired)
		if took := time.Since(began); took < 30*time.Millisecond {
			t.Errorf("waited only %v", took)
		}
	}
	w.unlock(lease)
}

// leaseMayBeSharedByTasks uses one lease in many goroutines; the race detector is the judge.
func leaseMayBeSharedByTasks(t *testing.T, s Subject) {
	w := newWorld(t, s)
	p := w.process(core.WithTTL(6 * time.Second))
	lease := w.must(p.lock("name").Lock(context.Background()))
	const tasks = 8
	done := make(chan struct{}, tasks)
	for range tasks {
		go func() {
			defer func() { done <- struct{}{} }()
			for range 10 {
				_, _, _ = lease.ValidUntil(), lease.Token(), lease.Owner()
				if err := lease.Extend(context.Background(), 8*time.Second); err != nil {
					t.Errorf("extend: %v", err)
				}
				inner, err := p.lock("name").Lock(lease.Context())
				if err != nil {
					t.Errorf("enter: %v", err)
					return
				}
				w.unlock(inner)
			}
		}()
	}
	for range tasks {
		<-done
	}
	w.unlock(lease)
	w.free("name")
}
