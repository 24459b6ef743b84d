package hooks_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// spans are hooks that put a value into the context of each acquisition and attempt, and note what the other hooks find.
type spans struct {
	mu     sync.Mutex
	found  map[string][]any // by hook and name
	ended  []string         // hooks whose context had an end that it must not have
	begins chan string
}

type spanKey struct{}

func (s *spans) note(ctx context.Context, hook, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ends := ctx.Deadline(); (hook == "Renewed" || hook == "Lost") && (ctx.Done() != nil || ends) {
		s.ended = append(s.ended, hook)
	}
	key := hook + " " + name
	s.found[key] = append(s.found[key], ctx.Value(spanKey{}))
	select {
	case s.begins <- key:
	default:
	}
}

func (s *spans) hooks() core.Hooks {
	s.found, s.begins = make(map[string][]any), make(chan string, 100)
	start := func(ctx context.Context, name string) context.Context {
		return context.WithValue(ctx, spanKey{}, "span of "+name)
	}
	return core.Hooks{
		AcquireStart: func(ctx context.Context, a core.AcquireStart) context.Context { return start(ctx, a.Name) },
		BeginStart:   func(ctx context.Context, b core.BeginStart) context.Context { return start(ctx, b.Key) },
		Wait:         func(ctx context.Context, w core.Wait) { s.note(ctx, "Wait", w.Name) },
		AcquireEnd:   func(ctx context.Context, e core.AcquireEnd) { s.note(ctx, "AcquireEnd", e.Name) },
		ReleaseStart: func(ctx context.Context, r core.ReleaseStart) context.Context {
			s.note(ctx, "ReleaseStart", r.Name)
			return ctx
		},
		ReleaseEnd: func(ctx context.Context, r core.ReleaseEnd) { s.note(ctx, "ReleaseEnd", r.Name) },
		BeginEnd:   func(ctx context.Context, e core.BeginEnd) { s.note(ctx, "BeginEnd", e.Key) },
		AttemptEnd: func(ctx context.Context, e core.AttemptEnd) { s.note(ctx, "AttemptEnd", e.Key) },
		Renewed:    func(ctx context.Context, r core.Renewed) { s.note(ctx, "Renewed", r.Name) },
		Lost:       func(ctx context.Context, l core.Lost) { s.note(ctx, "Lost", l.Name) },
	}
}

// await waits until a hook was called for a name.
func (s *spans) await(t *testing.T, key string) {
	t.Helper()
	testkit.Eventually(t, coretest.Within, key, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.found[key]) > 0
	})
}

// TestHooksFindTheirContext: each hook has the values of the context in which its own lock was acquired, even if Unlock is
// called with the context of another lock.
func TestHooksFindTheirContext(t *testing.T) {
	t.Parallel()
	var seen spans
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long), core.WithLogger(nil), core.WithHooks(seen.hooks()))
	ctx, cancel := context.WithTimeout(t.Context(), coretest.Within) // an end that Renewed and Lost must not see
	defer cancel()
	outer := coretest.MustLockWith(t, ctx, locks.Mutex("outer"), core.WithTTL(6*time.Second))
	seen.await(t, "Renewed outer")
	members := coretest.MustLockWith(t, ctx, core.Multi(locks.Mutex("{m}a"), locks.Mutex("{m}b")))
	waiting := make(chan error, 1)
	go func() {
		lease, err := locks.Fair("outer").Lock(ctx)
		if err == nil {
			err = lease.Unlock(outer.Context())
		}
		waiting <- err
	}()
	seen.await(t, "Wait outer")
	inner := coretest.MustLockWith(t, ctx, locks.Write("inner"))
	if err := inner.Unlock(outer.Context()); err != nil {
		t.Error(err)
	}
	coretest.Unlock(t, members)
	coretest.Unlock(t, outer)
	if err := coretest.Receive(t, waiting); err != nil {
		t.Error(err)
	}
	coretest.MustLockWith(t, ctx, locks.Mutex("lost")).Abandon()
	attempt, err := locks.Once("attempt").Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := attempt.Complete(outer.Context(), nil); err != nil {
		t.Error(err)
	}
	wantSpans(t, &seen, "Wait outer", "AcquireEnd outer", "AcquireEnd {m}a", "AcquireEnd {m}b", "ReleaseStart inner", "ReleaseEnd inner",
		"ReleaseEnd outer", "ReleaseEnd {m}a", "ReleaseEnd {m}b", "Renewed outer", "Lost lost", "BeginEnd attempt", "AttemptEnd attempt")
}

// wantSpans checks that these hooks were called, and that each call of a hook had the span of its own name.
func wantSpans(t *testing.T, seen *spans, keys ...string) {
	t.Helper()
	seen.mu.Lock()
	defer seen.mu.Unlock()
	for _, key := range keys {
		if len(seen.found[key]) == 0 {
			t.Errorf("%s was not called", key)
		}
	}
	for key, values := range seen.found {
		for _, value := range values {
			if text, _ := value.(string); text == "" || key[len(key)-len(text)+len("span of "):] != text[len("span of "):] {
				t.Errorf("%s found %q", key, value)
			}
		}
	}
	if len(seen.ended) > 0 {
		t.Errorf("with an end: %q", seen.ended)
	}
}

// TestReleaseHooksEndWithTheCall: their context ends with the context of Unlock, and has its values too.
func TestReleaseHooksEndWithTheCall(t *testing.T) {
	t.Parallel()
	type callKey struct{}
	var deadline time.Time
	var value any
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long), core.WithHooks(core.Hooks{
		ReleaseEnd: func(ctx context.Context, _ core.ReleaseEnd) {
			deadline, _ = ctx.Deadline()
			value = ctx.Value(callKey{})
		},
	}))
	lease := coretest.MustLock(t, locks.Mutex("name"))
	ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), callKey{}, "call"), coretest.Within)
	defer cancel()
	if err := lease.Unlock(ctx); err != nil {
		t.Error(err)
	}
	if want, _ := ctx.Deadline(); !deadline.Equal(want) || value != "call" {
		t.Errorf("deadline %v, want %v; value %v", deadline, want, value)
	}
}

// TestReleaseHooksHaveTheCallsCause: they have the values of the context that the lease was acquired with, but the cause of
// the end of Unlock's. Package context keeps a cause as a value, too.
func TestReleaseHooksHaveTheCallsCause(t *testing.T) {
	t.Parallel()
	var value any
	causes := make(map[string]error)
	note := func(ctx context.Context, hook string) { value, causes[hook] = ctx.Value(spanKey{}), context.Cause(ctx) }
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long), core.WithHooks(core.Hooks{
		ReleaseStart: func(ctx context.Context, _ core.ReleaseStart) context.Context { note(ctx, "start"); return ctx },
		ReleaseEnd:   func(ctx context.Context, _ core.ReleaseEnd) { note(ctx, "end") },
	}))
	acquired, cancel := context.WithCancelCause(context.WithValue(t.Context(), spanKey{}, "span"))
	lease := coretest.MustLockWith(t, acquired, locks.Mutex("name"))
	cancel(errors.New("the wait is over"))
	called, cancel := context.WithCancelCause(context.Background())
	shutdown := errors.New("shutdown")
	cancel(shutdown)
	if err := lease.Unlock(called); err != nil || value != "span" || causes["start"] != shutdown || causes["end"] != shutdown {
		t.Errorf("%v, value %v, causes %v", err, value, causes)
	}
}

// TestHooksWithoutContext: a hook that returns none leaves the call its own.
func TestHooksWithoutContext(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithHooks(core.Hooks{
		AcquireStart: func(context.Context, core.AcquireStart) context.Context { return nil },
		ReleaseStart: func(context.Context, core.ReleaseStart) context.Context { return nil },
		BeginStart:   func(context.Context, core.BeginStart) context.Context { return nil },
	}))
	for _, l := range []*core.Lock{locks.Mutex("a"), locks.Fair("b"), core.Multi(locks.Mutex("a"), locks.Mutex("b"))} {
		coretest.Unlock(t, coretest.MustLock(t, l))
	}
	if err := coretest.MustBegin(t, locks.Once("a")).Complete(t.Context(), nil); err != nil {
		t.Error(err)
	}
	coretest.Gone(t, rdb, "lock:a")
}
