package cronlock_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestOddNames: each is taken as it is, and no job is taken for another.
func TestOddNames(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	c, tick := cron.New(), time.Now().Truncate(time.Second)
	names := []string{
		"a", "a\n", "a\r\n*1\r\n$8\r\nFLUSHALL\r\n", "'); redis.call('FLUSHALL') --", "\xff", "\xfe", "ä", " ", "*", "%s",
		"a:at:", "a:at:2026-01-01T00:00:00Z", "a:now:", "a:paused", "cron:a", "lock:cron:a", "holdfast:once:a", "\x1b[2J",
		strings.Repeat("x", 200),
	}
	for _, name := range names {
		if _, err := cronlock.AddSchedule(c, locks, after(time.Hour), name, idle, cronlock.WithLogger(quiet)); err != nil {
			t.Fatalf("%q: %v", name, err)
		}
	}
	for i, name := range names { // the ticks tell whose they are
		cronlock.Fire(c, name, tick.Add(-time.Duration(i)*time.Second))
	}
	if err := cronlock.Pause(t.Context(), locks, "a"); err != nil {
		t.Error(err)
	}
	for i, name := range names {
		runs, err := cronlock.History(t.Context(), locks, name)
		if err != nil || len(runs) != 1 || runs[0].Job != name || !runs[0].Tick.Equal(tick.Add(-time.Duration(i)*time.Second)) {
			t.Errorf("%q: %+v, %v", name, runs, err)
		}
		if paused, err := cronlock.IsPaused(t.Context(), locks, name); paused != (name == "a") || err != nil {
			t.Errorf("%q: paused %v, %v", name, paused, err)
		}
	}
}

// TestRefusedNames: wherever they come in, with what is wrong with them, in a few words.
func TestRefusedNames(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := testkit.Start(t)
	locks := newClient(t, server.Client())
	huge := strings.Repeat("\xff{\n", 10<<20/3)
	for name, says := range map[string]string{
		"": "has no name", "a{b}": `"a{b}"`, "}\n": `"}\n"`, "\x00": `"\x00"`, strings.Repeat("x", 201): "201 bytes",
		huge: fmt.Sprintf("%d bytes", len(huge)),
	} {
		for what, err := range map[string]error{
			"AddFunc":     second(cronlock.AddFunc(cron.New(), locks, "@hourly", name, idle)),
			"AddSchedule": second(cronlock.AddSchedule(cron.New(), locks, after(1), name, idle)),
			"Exclusive":   second(cronlock.NewExclusive(locks.Mutex, name)),
			"RunNow":      cronlock.RunNow(ctx, cron.New(), name),
			"History":     second(cronlock.History(ctx, locks, name)),
			"Pause":       cronlock.Pause(ctx, locks, name),
			"Resume":      cronlock.Resume(ctx, locks, name),
			"IsPaused":    second(cronlock.IsPaused(ctx, locks, name)),
		} {
			if err == nil || !strings.Contains(err.Error(), says) || len(err.Error()) > 1000 {
				t.Errorf("%s of %.20q: %.200v", what, name, err)
			}
		}
	}
	for command := range server.CommandStats() {
		if strings.HasPrefix(command, "eval") {
			t.Errorf("Redis was asked: %s", command)
		}
	}
}
