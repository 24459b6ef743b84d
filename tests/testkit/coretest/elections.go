package coretest

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

func MustCampaign(t testing.TB, e *core.Election) *core.Leadership {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Within)
	defer cancel()
	l, err := e.Campaign(ctx)
	if err != nil {
		t.Fatalf("campaign: %v", err)
	}
	return l
}

// CampaignLater campaigns in another goroutine; leadership arrives when it is won.
func CampaignLater(t testing.TB, e *core.Election) <-chan *core.Leadership {
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

func AwaitLead(t testing.TB, done <-chan *core.Leadership) *core.Leadership {
	t.Helper()
	select {
	case l := <-done:
		if l == nil {
			t.FailNow()
		}
		return l
	case <-time.After(Within):
		t.Fatalf("waited %v for leadership", Within)
		return nil
	}
}

func Resign(t testing.TB, l *core.Leadership) {
	t.Helper()
	if err := l.Resign(context.Background()); err != nil {
		t.Errorf("resign: %v", err)
	}
}

func MustLeader(t testing.TB, e *core.Election) core.Leader {
	t.Helper()
	l, err := e.Leader(context.Background())
	if err != nil {
		t.Fatalf("leader: %v", err)
	}
	return l
}

func Proclaim(t testing.TB, l *core.Leadership, value string) {
	t.Helper()
	if err := l.Proclaim(context.Background(), value); err != nil {
		t.Errorf("proclaim %q: %v", value, err)
	}
}

// Observe returns a function for the next state that an observer is told. The observer ends with the test.
func Observe(t testing.TB, e *core.Election) (next func() core.Leader) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*Within)
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

// WantTold checks which lead the observer is notified of, and with which value. A nil lead is a vacancy.
func WantTold(t testing.TB, got core.Leader, lead *core.Leadership, value string) {
	t.Helper()
	switch {
	case lead == nil && got.Owner != "":
		t.Errorf("the observer is told of %+v, want no leader", got)
	case lead != nil && (got.Owner == "" || got.Term != lead.Term() || got.Value != value):
		t.Errorf("the observer is told of %+v, want term %d and %q", got, lead.Term(), value)
	}
}
