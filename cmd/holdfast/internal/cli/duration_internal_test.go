package cli

import (
	"strings"
	"testing"
	"time"
)

// TestDuration: seconds and the units of Go are taken; errors say what is wrong.
func TestDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"90": 90 * time.Second, "0.5": 500 * time.Millisecond, "1h30m": 90 * time.Minute, "0": 0, "1.5s": 1500 * time.Millisecond,
	} {
		var d duration
		if err := d.UnmarshalText([]byte(text)); err != nil || d.value() != want {
			t.Errorf("%q is %v, %v", text, d.value(), err)
		}
	}
	for text, says := range map[string]string{
		"": "no duration", "soon": "no duration", "NaN": "no duration", "5x": "no duration", "h": "no duration",
		"-1": "negative", "-1h": "negative", "inf": "too long", "1e10": "too long", "1e400": "too long", "9999999h": "too long", "1h9999999.5h": "too long",
	} {
		var d duration
		if err := d.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}
