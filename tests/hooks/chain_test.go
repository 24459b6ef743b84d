package hooks_test

import (
	"context"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

type chainKey struct{}

// chained returns hooks that note their calls, and append a letter to what the context carries.
func chained(letter string, calls *[]string) core.Option {
	carried := func(ctx context.Context) string { text, _ := ctx.Value(chainKey{}).(string); return text }
	note := func(ctx context.Context, hook string) { *calls = append(*calls, letter+" "+hook+" "+carried(ctx)) }
	start := func(ctx context.Context, hook string) context.Context {
		note(ctx, hook)
		return context.WithValue(ctx, chainKey{}, carried(ctx)+letter)
	}
	return core.WithHooks(core.Hooks{
		AcquireStart: func(ctx context.Context, _ core.AcquireStart) context.Context { return start(ctx, "acquire") },
		AcquireEnd:   func(ctx context.Context, _ core.AcquireEnd) { note(ctx, "acquired") },
		ReleaseStart: func(ctx context.Context, _ core.ReleaseStart) context.Context { return start(ctx, "release") },
		ReleaseEnd:   func(ctx context.Context, _ core.ReleaseEnd) { note(ctx, "released") },
	})
}

// TestHooksAreCombined: hooks of several options are called in their order, and each start gets the context of the one before.
func TestHooksAreCombined(t *testing.T) {
	t.Parallel()
	var calls []string
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long),
		chained("a", &calls), core.WithHooks(core.Hooks{}), chained("b", &calls))
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("name")))
	want := []string{
		"a acquire ", "b acquire a", "a acquired ab", "b acquired ab",
		"a release ab", "b release aba", "a released abab", "b released abab",
	}
	if !slices.Equal(calls, want) {
		t.Errorf("calls %q, want %q", calls, want)
	}
}

// TestPanicOfOneHook: the hooks of other options are called all the same, so that what they count stays right.
func TestPanicOfOneHook(t *testing.T) {
	t.Parallel()
	counted := 0
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long), core.WithLogger(nil),
		core.WithHooks(core.Hooks{Lost: func(context.Context, core.Lost) { panic("first") }}),
		core.WithHooks(core.Hooks{Lost: func(context.Context, core.Lost) { counted++ }}))
	coretest.MustLock(t, locks.Mutex("name")).Abandon()
	if counted != 1 {
		t.Errorf("the second hook was called %d times", counted)
	}
}

// TestPanicInWait: another hook sees the end of a call that a panic of a hook has ended, so that waiters can be counted.
func TestPanicInWait(t *testing.T) {
	t.Parallel()
	began, ended := 0, 0
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long),
		core.WithHooks(core.Hooks{Wait: func(context.Context, core.Wait) { panic("first") }}),
		core.WithHooks(core.Hooks{
			Wait:       func(context.Context, core.Wait) { began++ },
			AcquireEnd: func(_ context.Context, end core.AcquireEnd) { ended += min(1, len(end.Err.Error())) },
			BeginEnd:   func(_ context.Context, end core.BeginEnd) { ended += min(1, len(end.Err.Error())) },
		}))
	other := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	defer coretest.Unlock(t, coretest.MustLock(t, other.Mutex("name")))
	coretest.MustBegin(t, other.Once("name"))
	for _, call := range []func(){
		func() { _, _ = locks.Mutex("name").Lock(t.Context()) },
		func() { _, _ = locks.Once("name", core.WithWait(coretest.Long)).Begin(t.Context()) },
	} {
		func() {
			defer func() { _ = recover() }()
			call()
		}()
	}
	if began != 2 || ended != 2 {
		t.Errorf("%d waits began and %d ended", began, ended)
	}
}

// TestPanicInBeginEnd: the attempt that no caller gets is withdrawn, and hooks see that.
func TestPanicInBeginEnd(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	var ends []core.Outcome
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithHooks(core.Hooks{
		BeginEnd:   func(context.Context, core.BeginEnd) { panic("hook") },
		AttemptEnd: func(_ context.Context, end core.AttemptEnd) { ends = append(ends, end.Outcome) },
	}))
	func() {
		defer func() { _ = recover() }()
		_, _ = locks.Once("name").Begin(t.Context())
	}()
	if !slices.Equal(ends, []core.Outcome{core.OutcomeWithdrawn}) {
		t.Errorf("ends %q", ends)
	}
	free := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long)).Once("name", core.WithWait(coretest.Within))
	if attempt := coretest.MustBegin(t, free); attempt.Number() != 1 {
		t.Errorf("the next attempt has the number %d", attempt.Number())
	}
}
