package cronlock_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestNoTick: a spec that no date fits is logged when its job is added, because the scheduler never starts it. Others are
// not.
func TestNoTick(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	for spec, never := range map[string]bool{"0 0 30 2 *": true, "0 0 31 4 *": true, "0 0 29 2 *": false, "@every 5m": false} {
		var logged bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&logged, nil))
		if _, err := cronlock.AddFunc(cron.New(), locks, spec, "job", idle, cronlock.WithLogger(logger)); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(logged.String(), "the schedule has no tick to come"); got != never {
			t.Errorf("%s: logged %q", spec, logged.String())
		}
	}
}
