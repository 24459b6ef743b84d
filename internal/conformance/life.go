package conformance

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

var lifeTests = map[string]func(*testing.T, Subject){
	"DoRunsUnderTheLock":       doRunsUnderTheLock,
	"DoReleasesOnPanic":        doReleasesOnPanic,
	"DoTellsOfTheLoss":         doTellsOfTheLoss,
	"DoEndsWithItsContext":     doEndsWithItsContext,
	"TryDoDoesNotWait":         tryDoDoesNotWait,
	"HooksSeeEveryStep":        hooksSeeEveryStep,
	"OptionsMayBeUsedAgain":    optionsMayBeUsedAgain,
	"LeaseMayBeSharedByTasks":  leaseMayBeSharedByTasks,
	"PanickingHooksLoseNoLock": panickingHooksLoseNoLock,
}

func doRunsUnderTheLock(t *testing.T, s Subject) {
	w := newWorld(t, s)
	l := w.process(core.WithTTL(long)).lock("name")
	failure := errors.New("failure")
	err := core.Do(context.Background(), l, func(ctx context.Context) error {
		w.held("name")
		token, ok := core.TokenFrom(ctx)
		if !ok || token <= 0 {
			t.Errorf("TokenFrom = %d, %v", token, ok)
		}
		return core.Do(ctx, l, func(ctx context.Context) error { // enters again
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
		_ = core.Do(context.Background(), l, func(context.Context) error { panic("panic") })
	}()
	w.free("name")
}

func doTellsOfTheLoss(t *testing.T, s Subject) {
	w := newWorld(t, s)
	l := w.process().lock("name")
	err := core.Do(context.Background(), l, func(ctx context.Context) error {
		w.each((*redistest.Server).Restart)
		wait(t, ctx.Done(), "the context to end")
		w.wantErr(context.Cause(ctx), core.ErrLeaseLost)
		return nil
	}, core.WithTTL(time.Second))
	w.wantErr(err, core.ErrLeaseLost)
}

func doEndsWithItsContext(t *testing.T, s Subject) {
	w := newWorld(t, s)
	ctx, cancel := context.WithCancel(context.Background())
	err := core.Do(ctx, w.process(core.WithTTL(long)).lock("name"), func(ctx context.Context) error {
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
	err := core.TryDo(context.Background(), w.process().lock("name"), func(context.Context) error {
		t.Error("ran without the lock")
		return nil
	})
	w.wantErr(err, core.ErrNotAcquired)
}

func hooksSeeEveryStep(t *testing.T, s Subject) {
	w := newWorld(t, s)
	type key struct{}
	var steps []string
	lost := make(chan core.Lost, 1)
	check := func(ctx context.Context, step string) {
		if ctx.Value(key{}) != step {
			t.Errorf("%s: context is not that of its start", step)
		}
		steps = append(steps, step)
	}
	p := w.process(core.WithHooks(core.Hooks{
		AcquireStart: func(ctx context.Context, _ core.AcquireStart) context.Context {
			return context.WithValue(ctx, key{}, "acquired")
		},
		AcquireEnd: func(ctx context.Context, end core.AcquireEnd) {
			check(ctx, "acquired")
			if end.Token == 0 || end.Asked == 0 || end.Err != nil || end.Name != "name" || end.Owner == "" {
				t.Errorf("acquired %+v", end)
			}
		},
		ReleaseStart: func(ctx context.Context, _ core.ReleaseStart) context.Context {
			return context.WithValue(ctx, key{}, "released")
		},
		ReleaseEnd: func(ctx context.Context, end core.ReleaseEnd) {
			check(ctx, "released")
			if end.Token == 0 || end.Held <= 0 || end.Err != nil {
				t.Errorf("released %+v", end)
			}
		},
		Lost: func(l core.Lost) { lost <- l },
	}))
	w.unlock(w.must(p.lock("name").Lock(context.Background())))
	lease := w.must(p.lock("name").TryLock(context.Background(), core.WithFixedTTL(short)))
	select {
	case l := <-lost:
		w.wantErr(l.Cause, core.ErrLeaseLost)
		if l.Token != lease.Token() {
			t.Errorf("lost %+v", l)
		}
	case <-time.After(within):
		t.Fatal("the loss was not told")
	}
	if len(steps) != 3 {
		t.Errorf("steps %v", steps)
	}
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
		_, err := p.lock("name", opts...).Lock(ctx, opts...)
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
	p := w.process(core.WithTTL(3 * time.Second))
	lease := w.must(p.lock("name").Lock(context.Background()))
	const tasks = 8
	done := make(chan struct{}, tasks)
	for range tasks {
		go func() {
			defer func() { done <- struct{}{} }()
			for range 10 {
				_, _, _ = lease.ValidUntil(), lease.Token(), lease.Owner()
				if err := lease.Extend(context.Background(), 4*time.Second); err != nil {
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

// panickingHooksLoseNoLock lets hooks panic: no lock may stay behind, and the client goes on.
func panickingHooksLoseNoLock(t *testing.T, s Subject) {
	w := newWorld(t, s)
	var acquire, release atomic.Bool
	p := w.process(core.WithLogger(nil), core.WithTTL(3*time.Second), core.WithHooks(core.Hooks{
		AcquireEnd: func(context.Context, core.AcquireEnd) {
			if acquire.Load() {
				panic("acquired")
			}
		},
		ReleaseStart: func(ctx context.Context, _ core.ReleaseStart) context.Context {
			if release.Load() {
				panic("released")
			}
			return ctx
		},
		Renewed: func(core.Renewed) { panic("renewed") },
		Lost:    func(core.Lost) { panic("lost") },
	}))
	panics := func(call func()) {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not reach the caller")
			}
		}()
		call()
	}
	acquire.Store(true)
	panics(func() { _, _ = p.lock("name").Lock(context.Background()) })
	acquire.Store(false)
	w.free("name")

	lease := w.must(p.lock("name").Lock(context.Background()))
	began := time.Now()
	redistest.Eventually(t, within, "two renewals", func() bool {
		return lease.Context().Err() != nil || lease.ValidUntil().After(began.Add(5*time.Second))
	})
	release.Store(true)
	panics(func() { _ = lease.Unlock(context.Background()) })
	release.Store(false)
	w.free("name")
}
