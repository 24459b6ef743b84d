package lockconformance

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

var hookTests = map[string]func(*testing.T, Subject){
	"HooksSeeEveryStep":        hooksSeeEveryStep,
	"PanickingHooksLoseNoLock": panickingHooksLoseNoLock,
}

// hooksSeeEveryStep: of each lock that the subject's lock is made of.
func hooksSeeEveryStep(t *testing.T, s Subject) {
	w := newWorld(t, s)
	seen := &steps{t: t, tokens: make(map[string]int64), lost: make(chan core.Lost, 8)}
	p := w.process(core.WithHooks(seen.hooks()))
	lock := p.pair.Lock
	members := lock.members()
	w.unlock(w.must(p.lock("name").TryLock(context.Background())))
	seen.want(members, members, members)
	seen.losing(members > 1)
	lease := w.must(p.lock("name").Lock(context.Background(), core.WithFixedTTL(short)))
	select {
	case l := <-seen.lost:
		w.wantErr(l.Cause, core.ErrLeaseLost)
		if !lock.calls("name", l.Name) || l.Token != seen.token(l.Name) || members == 1 && l.Token != lease.Token() {
			t.Errorf("lost %+v", l)
		}
	case <-time.After(within):
		t.Fatal("the loss was not told")
	}
	// What is lost is not told to be released; what was held together with it may be.
	seen.want(2*members, members, 2*members-1)
	if seen.token("name") == 0 {
		t.Error("nothing was told of the lock of this name")
	}
}

// steps is what the hooks of a process were told.
type steps struct {
	t    *testing.T
	lost chan core.Lost

	mu                 sync.Mutex
	acquired, released int
	tokens             map[string]int64 // of the last grant, by name
	mayBeOver          bool             // what is released may have been lost before
}

func (s *steps) losing(mayBeOver bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mayBeOver = mayBeOver
}

type stepKey struct{}

func (s *steps) hooks() core.Hooks {
	return core.Hooks{
		AcquireStart: func(ctx context.Context, _ core.AcquireStart) context.Context {
			return context.WithValue(ctx, stepKey{}, "acquired")
		},
		AcquireEnd: func(ctx context.Context, end core.AcquireEnd) {
			s.count(ctx, "acquired", &s.acquired)
			if end.Token == 0 || end.Asked == 0 || end.Err != nil || end.Name == "" || end.Owner == "" {
				s.t.Errorf("acquired %+v", end)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.tokens[end.Name] = end.Token
		},
		ReleaseStart: func(ctx context.Context, _ core.ReleaseStart) context.Context {
			return context.WithValue(ctx, stepKey{}, "released")
		},
		ReleaseEnd: func(ctx context.Context, end core.ReleaseEnd) {
			s.count(ctx, "released", &s.released)
			s.mu.Lock()
			defer s.mu.Unlock()
			over := s.mayBeOver && errors.Is(end.Err, core.ErrNotHeld)
			if end.Token == 0 || end.Held <= 0 || end.Err != nil && !over {
				s.t.Errorf("released %+v", end)
			}
		},
		Lost: func(_ context.Context, l core.Lost) { s.lost <- l },
	}
}

func (s *steps) count(ctx context.Context, step string, n *int) {
	if ctx.Value(stepKey{}) != step {
		s.t.Errorf("%s: context is not that of its start", step)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	*n++
}

// want checks how many steps there were so far: this many acquisitions, and releases from least to most.
func (s *steps) want(acquired, least, most int) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.acquired != acquired || s.released < least || s.released > most {
		s.t.Errorf("told of %d acquisitions and %d releases, want %d and %d to %d",
			s.acquired, s.released, acquired, least, most)
	}
}

func (s *steps) token(name string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tokens[name]
}

// panickingHooksLoseNoLock lets hooks panic: no lock may stay behind, and the client continues.
func panickingHooksLoseNoLock(t *testing.T, s Subject) {
	w := newWorld(t, s)
	var acquire, release atomic.Bool
	p := w.process(core.WithLogger(nil), core.WithTTL(6*time.Second), core.WithHooks(core.Hooks{
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
		Renewed: func(context.Context, core.Renewed) { panic("renewed") },
		Lost:    func(context.Context, core.Lost) { panic("lost") },
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
	testkit.Eventually(t, within, "two renewals", func() bool {
		return lease.Context().Err() != nil || lease.ValidUntil().After(began.Add(5*time.Second))
	})
	release.Store(true)
	panics(func() { _ = lease.Unlock(context.Background()) })
	release.Store(false)
	w.free("name")
}
