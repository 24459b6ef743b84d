package cronlock

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestClockOffset(t *testing.T) {
	t.Parallel()
	server := clock("10:00:00")
	for _, test := range []struct {
		name            string
		asked, answered time.Duration // by the clock of this replica
		want            time.Duration
	}{
		{"same", -time.Millisecond, time.Millisecond, 0},
		{"slow answer", -time.Minute, time.Millisecond, 0},
		{"ahead", 20 * time.Second, 21 * time.Second, 20 * time.Second},
		{"behind", -21 * time.Second, -20 * time.Second, -20 * time.Second},
	} {
		if got := clockOffset(server.Add(test.asked), server.Add(test.answered), server); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// TestSkewed: the hook hears it each time, the log now and then.
func TestSkewed(t *testing.T) {
	t.Parallel()
	const line = "the clock of this replica differs from Redis's; if all replicas say so, look at Redis"
	var logged bytes.Buffer
	var offsets []time.Duration
	j := &job{name: "job", config: newConfig([]Option{
		WithLogger(slog.New(slog.NewTextHandler(&logged, nil))), WithMaxSkew(10 * time.Second),
		WithHooks(Hooks{Skewed: func(offset time.Duration) { offsets = append(offsets, offset) }}),
	})}
	now := clock("10:00:00")
	for _, offset := range []time.Duration{0, 5 * time.Second, 6 * time.Second, -7 * time.Second} {
		j.skewed(now, now, now.Add(-offset))
	}
	if want := []time.Duration{6 * time.Second, -7 * time.Second}; !slices.Equal(offsets, want) {
		t.Errorf("told of %v, want %v", offsets, want)
	}
	if n := strings.Count(logged.String(), line); n != 1 {
		t.Errorf("logged %d times: %s", n, logged.String())
	}
	j.skewed(now.Add(time.Hour), now.Add(time.Hour), now)
	if n := strings.Count(logged.String(), line); n != 2 {
		t.Errorf("after an hour logged %d times", n)
	}
}
