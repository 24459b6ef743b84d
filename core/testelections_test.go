package core_test

import (
	"context"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

func mustCampaign(t testing.TB, e *core.Election) *core.Leadership {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	l, err := e.Campaign(ctx)
	if err != nil {
		t.Fatalf("campaign: %v", err)
	}
	return l
}

// campaignLater campaigns in another goroutine; the lead arrives when it is won.
func campaignLater(t testing.TB, e *core.Election) <-chan *core.Leadership {
	done := make(chan *core.Leadership, 1)
	go func() {
		defer close(done)
		l, err := e.Campaign(context.Background())
		if err != nil {
			t.Errorf("campaign: %v", err)
			return
		}
		done <- l
	}()
	return done
}

func awaitLead(t testing.TB, done <-chan *core.Leadership) *core.Leadership {
	t.Helper()
	select {
	case l := <-done:
		if l == nil {
			t.FailNow()
		}
		return l
	case <-time.After(within):
		t.Fatalf("waited %v for the lead", within)
		return nil
	}
}

func resign(t testing.TB, l *core.Leadership) {
	t.Helper()
	if err := l.Resign(context.Background()); err != nil {
		t.Errorf("resign: %v", err)
	}
}

func mustLeader(t testing.TB, e *core.Election) core.Leader {
	t.Helper()
	l, err := e.Leader(context.Background())
	if err != nil {
		t.Fatalf("leader: %v", err)
	}
	return l
}

func proclaim(t testing.TB, l *core.Leadership, value string) {
	t.Helper()
	if err := l.Proclaim(context.Background(), value); err != nil {
		t.Errorf("proclaim %q: %v", value, err)
	}
}

// observe returns a function for the next state that an observer is told. The observer ends with the test.
func observe(t testing.TB, e *core.Election) (next func() core.Leader) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*within)
	pull, stop := iter.Pull(e.Observe(ctx))
	t.Cleanup(func() { cancel(); stop() })
	return func() core.Leader {
		t.Helper()
		l, ok := pull()
		if !ok {
			t.Error("the observer has ended")
		}
		return l
	}
}

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
	case <-time.After(within):
		t.Fatalf("waited %v for the lead", within)
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
