package asynq_test

import (
	"errors"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
)

// TestByTick: one key for each tick, in every queue. All other IDs have none.
func TestByTick(t *testing.T) {
	t.Parallel()
	key := asynqlock.ByTick()
	const id = "cron:report:2026-03-01T04:05:06Z"
	first, err := seen{id, "a", task("x", "p")}.key(t, key)
	wantNil(t, err)
	if other, err := (seen{id, "b", task("x", "q")}).key(t, key); err != nil || other != first {
		t.Errorf("%q, %v in another queue, want %q", other, err, first)
	}
	keys := map[string]string{first: id}
	for _, id := range []string{
		"cron:report:2026-03-01T04:05:07Z", "cron:report:2026-03-01T04:05:06.5Z", "cron:reports:2026-03-01T04:05:06Z",
		"cron:cron:report:2026-03-01T04:05:06Z", "cron:a:b:c:2026-03-01T04:05:06Z",
		"cron:2026-03-01T04:05:06Z:2026-03-01T04:05:06Z",
	} {
		got, err := seen{id, "a", task("x", "")}.key(t, key)
		if err != nil || keys[got] != "" {
			t.Errorf("%s: %q, %v, that of %s", id, got, err, keys[got])
		}
		keys[got] = id
	}
	for _, id := range []string{
		"", "report", "cron:", "cron:report", "cron:report:", "cron:2026-03-01T04:05:06Z", "cron::2026-03-01T04:05:06Z",
		"report:2026-03-01T04:05:06Z", "cron:report:2026-03-01T04:05:06", "cron:report:2026-03-01T04:05:06+00:00",
		"cron:report:2026-03-01T05:05:06+01:00", "cron:report:2026-03-01T04:05:06.50Z", "cron:report:2026-02-30T04:05:06Z",
		"Cron:report:2026-03-01T04:05:06Z", " cron:report:2026-03-01T04:05:06Z", "::", ":::", "cron:a:b:c",
	} {
		if got, err := (seen{id, "a", task("x", "")}).key(t, key); got != "" || !errors.Is(err, asynqlock.ErrNoKey) {
			t.Errorf("%s: %q, %v", id, got, err)
		}
	}
}

// TestTickFrom: job and tick, in UTC, of the task whose context it is.
func TestTickFrom(t *testing.T) {
	t.Parallel()
	ctx := asynqlock.ContextWithTask(t.Context(), &asynq.TaskInfo{ID: "cron:daily:report:2026-03-01T04:05:06Z"})
	job, tick, ok := asynqlock.TickFrom(ctx)
	if want := time.Date(2026, 3, 1, 4, 5, 6, 0, time.UTC); !ok || job != "daily:report" || tick != want {
		t.Errorf("%q, %v, %v", job, tick, ok)
	}
	if job, tick, ok := asynqlock.TickFrom(t.Context()); ok || job != "" || !tick.IsZero() {
		t.Errorf("without asynq: %q, %v", job, tick)
	}
}
