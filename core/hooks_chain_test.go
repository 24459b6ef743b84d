package core_test

import (
	"context"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/redistest"
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
	locks := newClient(t, redistest.Start(t).Client(), core.WithTTL(long),
		chained("a", &calls), core.WithHooks(core.Hooks{}), chained("b", &calls))
	unlock(t, mustLock(t, locks.Mutex("name")))
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
	locks := newClient(t, redistest.Start(t).Client(), core.WithTTL(long), core.WithLogger(nil),
		core.WithHooks(core.Hooks{Lost: func(context.Context, core.Lost) { panic("first") }}),
		core.WithHooks(core.Hooks{Lost: func(context.Context, core.Lost) { counted++ }}))
	mustLock(t, locks.Mutex("name")).Abandon()
	if counted != 1 {
		t.Errorf("the second hook was called %d times", counted)
	}
}
