package asynqlock

import (
	"strings"
	"testing"
)

// TestNotesAreCompact: a record with a longer field takes more than twice the memory. The task is named in full, and
// the place at its end.
func TestNotesAreCompact(t *testing.T) {
	t.Parallel()
	const uuid = "51e95400-3655-4284-8f9e-91e56668a5b4"
	pod := "receipts-of-the-shop-worker-7d9f8b6c5-x2x4z:12376"
	for _, test := range []struct {
		task    taskInfo
		place   string
		compact bool
		end     string
	}{
		{taskInfo{Queue: "default", ID: uuid}, pod, true, "6c5-x2x4z:12376"},
		{taskInfo{Queue: "default", ID: uuid}, "vm:7", true, " vm:7"},
		{taskInfo{Queue: "default", ID: "cron:report:2026-03-01T03:00:00Z"}, pod, true, "8b6c5-x2x4z:12376"},
		{taskInfo{Queue: strings.Repeat("q", 20), ID: uuid}, pod, false, pod}, // no room: all of it
		{taskInfo{Queue: "default", ID: strings.Repeat("x", 200)}, pod, true, "x2x4z:12376"},
		{taskInfo{Queue: "default", ID: uuid}, strings.Repeat("h", 1000), true, "hhhh"},
		{taskInfo{Queue: strings.Repeat("q", 80), ID: uuid}, strings.Repeat("h", 1000), false, "hhhh"},
	} {
		note := noteOf(identity(test.task), test.place)
		if !sameTask(note, test.task) || !strings.HasSuffix(note, test.end) || (len(note) <= 64) != test.compact || len(note) > 256 {
			t.Errorf("%+v at %s: note of %d bytes %q, want it to end in %q", test.task, test.place, len(note), note, test.end)
		}
	}
}
