package httplock

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// TestDefaults: what options do not say is the default of the guard.
func TestDefaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		made     func(...Option) settings
		wait     time.Duration
		maxValue int
	}{
		"Exclusive":  {exclusiveSettings, 250 * time.Millisecond, 0},
		"Once":       {onceSettings, 0, 256 << 10},
		"Idempotent": {idempotentSettings, 0, 256 << 10},
	} {
		s := test.made(nil)
		if s.err != nil || s.Wait != test.wait || s.MaxValue != test.maxValue || s.AskTimeout != time.Second ||
			s.FinishTimeout != 5*time.Second || s.Retention != 24*time.Hour {
			t.Errorf("%s: %+v", name, s)
		}
		if s = test.made(core.WithWait(0)); s.Wait != 0 {
			t.Errorf("%s: wait %v", name, s.Wait)
		}
	}
	until := WithRetentionUntil(func(now time.Time) time.Time { return now })
	if s := onceSettings(until, core.WithRetention(time.Hour)); s.RetentionUntil != nil || s.Retention != time.Hour {
		t.Errorf("retention %v, until %v: the last one counts", s.Retention, s.RetentionUntil != nil)
	}
}
