package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cronlock"
)

// TestMissed: a job that has missed ticks shows when the last one was.
func TestMissed(t *testing.T) {
	t.Parallel()
	if got := missed(cronlock.JobInfo{}); got != "0" {
		t.Errorf("none: %q", got)
	}
	at := time.Now()
	if got := missed(cronlock.JobInfo{Missed: 2, MissedTick: at}); !strings.HasPrefix(got, "2, last ") || !strings.HasSuffix(got, clockTime(at)) {
		t.Errorf("two: %q", got)
	}
}

// TestTook: only a run whose end is recorded has a duration.
func TestTook(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[cronlock.Outcome]string{
		cronlock.Running: "-", cronlock.Lost: "-", cronlock.Unknown: "-", cronlock.Success: "1.5s", cronlock.Failed: "1.5s",
	} {
		if got := took(cronlock.Run{Outcome: outcome, Took: 1500 * time.Millisecond}); got != want {
			t.Errorf("%s: %q, want %q", outcome, got, want)
		}
	}
}
