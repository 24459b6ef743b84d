package once_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestOnceHooks: what they are told, in order, and that the context of BeginStart reaches BeginEnd and the attempt.
func TestOnceHooks(t *testing.T) {
	t.Parallel()
	type span struct{}
	ctx := context.Background()
	var starts []core.BeginStart
	var begins []core.BeginEnd
	var ends []core.AttemptEnd
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long), core.WithHooks(core.Hooks{
		BeginStart: func(ctx context.Context, s core.BeginStart) context.Context {
			starts = append(starts, s)
			return context.WithValue(ctx, span{}, len(starts))
		},
		BeginEnd: func(ctx context.Context, e core.BeginEnd) {
			if begins = append(begins, e); ctx.Value(span{}) != len(starts) {
				t.Error("BeginEnd without the context of BeginStart")
			}
		},
		AttemptEnd: func(_ context.Context, e core.AttemptEnd) { ends = append(ends, e) },
	}))
	once := locks.Once("name")
	a := coretest.MustBegin(t, once)
	if a.Context().Value(span{}) != 1 {
		t.Error("the attempt has not the values of the hook's context")
	}
	_, busy := once.Begin(ctx)
	released := a.Release(ctx)
	failure := errors.New("no")
	_, _ = once.Do(ctx, func(context.Context) ([]byte, error) { return nil, failure })
	_, _ = holding(locks, "held").Do(ctx, func(context.Context) ([]byte, error) { return nil, failure })
	got, _ := once.Do(ctx, func(context.Context) ([]byte, error) { return nil, nil })
	_, _ = once.Do(ctx, coretest.Answers(nil, ""))
	_ = a.Complete(ctx, nil) // has ended, so nothing is told
	if len(starts) != 6 || len(begins) != 6 || len(ends) != 4 {
		t.Fatalf("%d, %d and %d calls", len(starts), len(begins), len(ends))
	}
	wantBegins(t, starts, begins)
	wantEnds(t, ends)
	if begins[1].Err != busy || released != nil || got.Attempt != 3 {
		t.Errorf("%v, %v, %+v", busy, released, got)
	}
}

// wantBegins checks what hooks were told of the six calls of TestOnceHooks.
func wantBegins(t *testing.T, starts []core.BeginStart, begins []core.BeginEnd) {
	t.Helper()
	for i, want := range []struct {
		attempt int
		outcome core.Outcome
		err     error
	}{
		{1, core.OutcomeBegun, nil},
		{0, core.OutcomeInProgress, core.ErrInProgress},
		{2, core.OutcomeBegun, nil},
		{1, core.OutcomeBegun, nil},
		{3, core.OutcomeBegun, nil},
		{0, core.OutcomeReplayed, core.ErrCompleted},
	} {
		b := begins[i]
		if b.Attempt != want.attempt || b.Outcome != want.outcome || b.Contended != (i == 1) || (b.TTL == coretest.Long) != (want.err == nil) || !errors.Is(b.Err, want.err) || (b.Token != 0) != (want.err == nil) || b.Asked != 1 ||
			b.Waited <= 0 || b.Key != starts[i].Key || (b.Key == "held") != (i == 3) {
			t.Errorf("begin %d: %+v", i+1, b)
		}
	}
}

// wantEnds checks what a hook was told of the four attempts of TestOnceHooks.
func wantEnds(t *testing.T, ends []core.AttemptEnd) {
	t.Helper()
	for i, want := range []core.AttemptEnd{
		{Key: "name", Outcome: core.OutcomeReleased, Attempt: 1, State: core.StateNone},
		{Key: "name", Outcome: core.OutcomeReleased, Attempt: 2, State: core.StateNone},
		{Key: "held", Outcome: core.OutcomeHeld, Attempt: 1, State: core.StateUnknown},
		{Key: "name", Outcome: core.OutcomeCompleted, Attempt: 3, State: core.StateCompleted},
	} {
		e := ends[i]
		if e.Held <= 0 || e.Token == 0 {
			t.Errorf("end %d: %+v", i+1, e)
		}
		if e.Held, e.Token = 0, 0; e != want {
			t.Errorf("end %d: %+v", i+1, e)
		}
	}
}

// TestOnceHooksPanic: whichever hook panics, no caller has the key then without knowing of it.
func TestOnceHooksPanic(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	other := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	for name, hooks := range map[string]core.Hooks{
		"BeginStart": {BeginStart: func(context.Context, core.BeginStart) context.Context { panic("hook") }},
		"BeginEnd":   {BeginEnd: func(context.Context, core.BeginEnd) { panic("hook") }},
		"AttemptEnd": {AttemptEnd: func(context.Context, core.AttemptEnd) { panic("hook") }},
	} {
		locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithHooks(hooks))
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			_, _ = holding(locks, name).Do(ctx, func(context.Context) ([]byte, error) { return []byte("value"), nil })
		}()
		if name == "AttemptEnd" {
			if r := coretest.WantState(t, other.Once(name), core.StateCompleted, 1); string(r.Value) != "value" {
				t.Errorf("%+v", r)
			}
			continue
		}
		testkit.Eventually(t, coretest.Within, "the attempt to be taken back", func() bool {
			r := coretest.MustPeek(t, other.Once(name))
			return r.State == core.StateNone && r.Attempt == 0
		})
		if a := coretest.MustBegin(t, other.Once(name)); a.Number() != 1 {
			t.Errorf("%s: attempt %d", name, a.Number())
		}
		if err := locks.Close(); err != nil { // nothing continues
			t.Error(err)
		}
	}
}

// TestOnceHooksInTheBackground: Wait, Renewed and Lost are about attempts too, and a panic there ends nothing.
func TestOnceHooksInTheBackground(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	waits, renewed, lost := make(chan core.Wait, 100), make(chan core.Renewed, 100), make(chan core.Lost, 100)
	locks := coretest.NewClient(t, rdb, core.WithTTL(2*time.Second), core.WithLogger(nil), core.WithHooks(core.Hooks{
		Wait:    func(_ context.Context, w core.Wait) { waits <- w },
		Renewed: func(_ context.Context, r core.Renewed) { renewed <- r; panic("hook") },
		Lost:    func(_ context.Context, l core.Lost) { lost <- l; panic("hook") },
	}))
	a := coretest.MustBegin(t, locks.Once("name"))
	for range 2 {
		select {
		case r := <-renewed:
			if r.Name != "name" || r.Token != a.Token() || r.Err != nil {
				t.Errorf("%+v", r)
			}
		case <-a.Context().Done():
			t.Fatal("lost")
		}
	}
	done := make(chan error, 1)
	go func() {
		_, err := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithHooks(core.Hooks{
			Wait: func(_ context.Context, w core.Wait) { waits <- w },
		})).Once("name", core.WithWait(coretest.Within)).Do(ctx, func(context.Context) ([]byte, error) { return nil, nil })
		done <- err
	}()
	if w := <-waits; w.Name != "name" || w.RetryAfter <= 0 || w.RetryAfter > 2*time.Second {
		t.Errorf("%+v", w)
	}
	coretest.Forget(t, locks.Once("name"))
	if l := <-lost; l.Name != "name" || l.Token != a.Token() {
		t.Errorf("%+v", l)
	}
	if err := coretest.Receive(t, done); err != nil {
		t.Error(err)
	}
}

// TestOnceTokenFrom: the run's context has the values of the caller's, and the token of the innermost lease.
func TestOnceTokenFrom(t *testing.T) {
	t.Parallel()
	type value struct{}
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long))
	ctx := context.WithValue(context.Background(), value{}, "x")
	_, err := locks.Once("name").Do(ctx, func(ctx context.Context) ([]byte, error) {
		outer, ok := core.TokenFrom(ctx)
		if r := coretest.MustPeek(t, locks.Once("name")); !ok || outer != r.Token || ctx.Value(value{}) != "x" {
			t.Errorf("token %d, record %+v", outer, r)
		}
		lease := coretest.MustLockWith(t, ctx, locks.Mutex("name")) // another thing than the Once of that name
		inner, _ := core.TokenFrom(lease.Context())
		if inner <= outer || inner != lease.Token() {
			t.Errorf("token %d inside of %d", inner, outer)
		}
		coretest.Unlock(t, lease)
		_, err := locks.Once("name", core.WithWait(time.Hour)).Do(ctx, coretest.Answers(nil, ""))
		coretest.WantErr(t, err, core.ErrInProgress)
		return nil, nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestOnceHeedsContexts: the run's context ends with the caller's, and its end is recorded all the same.
func TestOnceHeedsContexts(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long))
	for name, result := range map[string]error{"done": nil, "failed": context.Canceled} {
		why := errors.New("client is gone")
		ctx, cancel := context.WithCancelCause(context.Background())
		_, err := locks.Once(name).Do(ctx, func(ctx context.Context) ([]byte, error) {
			cancel(why)
			<-ctx.Done()
			coretest.WantErr(t, context.Cause(ctx), why)
			return []byte("value"), result
		})
		if !errors.Is(err, result) {
			t.Errorf("%s: %v", name, err)
		}
		coretest.WantState(t, locks.Once(name), map[string]core.State{"done": core.StateCompleted}[name], 1)
		_, err = locks.Once(name).Begin(ctx)
		coretest.WantErr(t, err, why)
	}
}
