package election_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// runLater runs an election in another goroutine. The context of each call of the function arrives on led. The call returns
// what is sent on answer, even if its context has ended.
func runLater(ctx context.Context, e *core.Election) (led <-chan context.Context, answer chan<- error, done <-chan error) {
	l, a, d := make(chan context.Context, 1), make(chan error), make(chan error, 1)
	go func() {
		d <- e.Run(ctx, func(ctx context.Context) error {
			l <- ctx
			return <-a
		})
	}()
	return l, a, d
}

func awaitContext(t testing.TB, led <-chan context.Context) context.Context {
	t.Helper()
	select {
	case ctx := <-led:
		return ctx
	case <-time.After(coretest.Within):
		t.Fatalf("waited %v for leadership", coretest.Within)
		return nil
	}
}

// termOf returns the fencing token that a context carries.
func termOf(t testing.TB, ctx context.Context) int64 {
	t.Helper()
	term, ok := core.TokenFrom(ctx)
	if !ok {
		t.Error("the context of the leader carries no token")
	}
	return term
}

// containsLine returns true if a line of a log has all these texts.
func containsLine(log string, texts ...string) bool {
	for line := range strings.Lines(log) {
		all := true
		for _, text := range texts {
			all = all && strings.Contains(line, text)
		}
		if all {
			return true
		}
	}
	return false
}
