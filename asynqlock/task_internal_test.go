package asynqlock

import (
	"strings"
	"testing"

	"github.com/hibiken/asynq"
)

// TestNotesAreCompact: a record with a longer field takes more than twice the memory. The task is named in full, and
// the place at its end.
func TestNotesAreCompact(t *testing.T) {
	t.Parallel()
	const uuid = "51e95400-3655-4284-8f9e-91e56668a5b4"
	pod := "receipts-of-the-shop-worker-7d9f8b6c5-x2x4z:12376"
	for _, test := range []struct {
		task    asynq.TaskInfo
		place   string
		compact bool
		end     string
	}{
		{asynq.TaskInfo{Queue: "default", ID: uuid}, pod, true, "6c5-x2x4z:12376"},
		{asynq.TaskInfo{Queue: "default", ID: uuid}, "vm:7", true, " vm:7"},
		{asynq.TaskInfo{Queue: "default", ID: "cron:report:2026-03-01T03:00:00Z"}, pod, true, "8b6c5-x2x4z:12376"},
		{asynq.TaskInfo{Queue: strings.Repeat("q", 20), ID: uuid}, pod, false, " x2x4z:12376"[1:]},
		{asynq.TaskInfo{Queue: "default", ID: strings.Repeat("x", 200)}, pod, true, "x2x4z:12376"},
		{asynq.TaskInfo{Queue: "default", ID: uuid}, strings.Repeat("h", 1000), true, "hhhh"},
		{asynq.TaskInfo{Queue: strings.Repeat("q", 80), ID: uuid}, strings.Repeat("h", 1000), false, "hhhh"},
	} {
		got := note(test.task, test.place)
		if !sameTask(got, test.task) || !strings.HasSuffix(got, test.end) || (len(got) <= 64) != test.compact || len(got) > 256 {
			t.Errorf("%+v at %s: note of %d bytes %q, want it to end in %q", test.task, test.place, len(got), got, test.end)
		}
	}
}
