package cronlock_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestLostTickIsLogged: a replica that finds a tick whose runner has crashed says so, above the level of a tick that another
// replica runs.
func TestLostTickIsLogged(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	var log bytes.Buffer
	r := newReplica(t, locks, idle, cronlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	tick := time.Now()
	key := "cron:{job}:at:" + tick.UTC().Format(time.RFC3339Nano)
	attempt, err := locks.Once(key, core.WithFailurePolicy(core.HoldFailures)).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := attempt.Hold(t.Context(), "crashed"); err != nil {
		t.Fatal(err)
	}
	r.fire(tick)
	r.expect(t, 0, cronlock.Taken)
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "tick skipped") {
		t.Errorf("log %q", log.String())
	}
	log.Reset()
	taken := tick.Add(time.Second)
	r.fire(taken)
	r.fire(taken)
	if log.String() != "" {
		t.Errorf("a tick that has run: %q", log.String())
	}
}
