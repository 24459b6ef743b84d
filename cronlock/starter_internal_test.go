package cronlock

import (
	"testing"
	"time"

	"github.com/robfig/cron/v3"
)

// TestStarterKnowsWhenItBegan: the scheduler asks again once the entry was started, when a tick may be due already, and
// others ask before the scheduler begins or about later times.
func TestStarterKnowsWhenItBegan(t *testing.T) {
	t.Parallel()
	s := new(starter)
	s.oneTime = newOneTime(cron.New(), func() {})
	began := time.Now().Add(-time.Minute)
	for _, asked := range []time.Time{
		began.Add(-time.Hour), began, began.Add(time.Millisecond), began.Add(2 * time.Second), began.Add(time.Hour),
	} {
		if next := s.Next(asked); !next.After(asked) || next.Sub(asked) > 2*time.Second {
			t.Errorf("after %v comes %v", asked, next)
		}
	}
	if !s.at.Equal(began) {
		t.Errorf("began at %v, want %v", s.at, began)
	}
	if !s.take() || s.take() || !s.Next(began).IsZero() {
		t.Error("it is not over")
	}
}

// TestIsRunning asks a cron that has not begun, runs, and was stopped.
func TestIsRunning(t *testing.T) {
	t.Parallel()
	c := cron.New()
	for range 2 {
		if isRunning(c) {
			t.Error("it runs, though it was not started")
		}
		c.Start()
		if !isRunning(c) {
			t.Error("it does not run, though it was started")
		}
		<-c.Stop().Done()
	}
	if n := len(c.Entries()); n != 0 {
		t.Errorf("%d entries are left", n)
	}
	if err := launch(t.Context(), c, func() { t.Error("the work is done") }); err == nil || len(c.Entries()) != 0 {
		t.Errorf("launched: error %v, %d entries", err, len(c.Entries()))
	}
}
