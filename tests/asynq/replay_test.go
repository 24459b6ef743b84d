package asynq_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
)

// TestPeriodicTaskWithAFixedID: a scheduler enqueues each run under one ID, which is asynq's advice for several
// schedulers. ByTaskID takes every run for a redelivery of the first, and the log says so. PerPeriod tells them apart.
func TestPeriodicTaskWithAFixedID(t *testing.T) {
	t.Parallel()
	const runs = 3
	for name, test := range map[string]struct {
		key  func() asynqlock.KeyFunc
		want int
	}{
		"ByTaskID":  {asynqlock.ByTaskID, 1},
		"PerPeriod": {func() asynqlock.KeyFunc { return asynqlock.PerPeriod(asynqlock.ByType(), time.Millisecond) }, runs},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			var log diary
			s.serve(func(context.Context, *asynq.Task) error {
				s.effects.begin("report")
				s.effects.end("report", true)
				return nil
			}, asynqlock.Once(s.locks, test.key(), asynqlock.WithLogger(log.logger())))
			for range runs {
				s.enqueue(receipt("7"), asynq.TaskID("report"))
				s.awaitEmpty()
			}
			s.effects.want(t, "report", test.want, 1)
			wantReusedID(t, log.String(), test.want < runs)
		})
	}
}

// wantReusedID checks that a run which was lost to a fixed ID is told of once.
func wantReusedID(t *testing.T, log string, lost bool) {
	t.Helper()
	want := 0
	if lost {
		want = 1
	}
	if n := strings.Count(log, "level=WARN"); n != want {
		t.Errorf("%d warnings, want %d: %s", n, want, log)
	}
	for _, part := range []string{"acknowledged without running", "type=" + kind, "queue=default", "id=report", "ByTick"} {
		if lost && !strings.Contains(log, part) {
			t.Errorf("%s is not told: %s", part, log)
		}
	}
}

// TestReplaysAreLogged: a lost run at once and as a warning, an expected duplicate as news, a redelivery not at all.
func TestReplaysAreLogged(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		second *asynq.TaskInfo
		want   string
	}{
		"reused ID":  {delivery("1"), "level=WARN"},
		"duplicate":  {delivery("2"), "level=INFO"},
		"redelivery": {delivery("1", func(info *asynq.TaskInfo) { info.Retried = 1 }), ""},
		"without ID": {delivery(""), ""},
	} {
		d := newDesk(t)
		var log diary
		guard := asynqlock.Once(d.locks, asynqlock.ByPayload("order"), asynqlock.WithLogger(log.logger()))
		wantNil(t, d.deliver(delivery("1"), receipt("7"), nothing, guard))
		for range 3 {
			wantNil(t, d.deliver(test.second, receipt("7"), again, guard))
		}
		if got := log.String(); !strings.Contains(got, test.want) || strings.Count(got, "\n") != min(len(test.want), 1) {
			t.Errorf("%s: log %q, want %q once", name, got, test.want)
		}
		if _, rest, logged := strings.Cut(log.String(), "key_hash="); logged != (test.want != "") {
			t.Errorf("%s: no key_hash in %s", name, log.String())
		} else if hash, _, _ := strings.Cut(rest, " "); logged {
			found := 0
			for m, err := range d.locks.FindDigest(t.Context(), hash) {
				if found++; err != nil || !m.Record || m.Name != "asynq:"+hash {
					t.Errorf("%s: %s is that of %+v, %v", name, hash, m, err)
				}
			}
			if found != 1 {
				t.Errorf("%s: %d records have the hash %s of the log", name, found, hash)
			}
		}
	}
}
