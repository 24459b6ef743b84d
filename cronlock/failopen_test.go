package cronlock_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestFullRedisOpensNothing: FailOpen is for a Redis that does not answer, not for one that refuses.
func TestFullRedisOpensNothing(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	const deadline = 2 * time.Second
	r := newReplica(t, newClient(t, server.Client()), idle, cronlock.FailOpen(), cronlock.WithStartDeadline(deadline))
	if err := server.Client().ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	tick := time.Now()
	r.fire(tick)
	last := cronlock.Refused
	if slices.Contains(r.reasons(), cronlock.Late) && time.Since(tick) >= deadline {
		last = cronlock.Late // the last try has reached Redis after the deadline, which a slow machine can make it do
	}
	r.expect(t, 0, last)
}

// TestUnguardedRunsAreLogged: each run without Redis leaves one line of level error, with the job and the reason.
func TestUnguardedRunsAreLogged(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := newClient(t, server.Client())
	var ofTick, ofExclusive bytes.Buffer
	logger := func(b *bytes.Buffer) cronlock.Option {
		return cronlock.WithLogger(slog.New(slog.NewTextHandler(b, nil)))
	}
	r := newReplica(t, locks, idle, cronlock.FailOpen(), cronlock.WithStartDeadline(100*time.Millisecond), logger(&ofTick))
	server.Kill()
	r.fire(time.Now())
	r.expect(t, 1)
	ran := false
	exclusive := cronlock.Exclusive(locks.Mutex, "job", cronlock.FailOpen(), logger(&ofExclusive))
	exclusive(cron.FuncJob(func() { ran = true })).Run()
	if !ran {
		t.Error("Exclusive did not run the job")
	}
	const line = `level=ERROR msg="holdfast: cronlock: Redis could not be asked, the job runs unguarded" job=job tick=`
	for name, log := range map[string]string{"tick": ofTick.String(), "Exclusive": ofExclusive.String()} {
		if strings.Count(log, line) != 1 || !strings.Contains(log, "no answer from Redis") {
			t.Errorf("%s: log %q", name, log)
		}
	}
}
