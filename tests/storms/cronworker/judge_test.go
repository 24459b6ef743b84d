//go:build unix

package cronworker_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/tests/storms/cronworker"
)

// TestMeetings checks the judge: two runs of a job, of process 1 from 10 to 20 and of process 2 from 15 on.
func TestMeetings(t *testing.T) {
	t.Parallel()
	at := func(n int, e cronworker.Entry) cronworker.Entry {
		e.At = time.UnixMicro(int64(n))
		return e
	}
	process := func(pid int, kind cronworker.Kind) cronworker.Entry {
		return cronworker.Entry{Kind: kind, PID: pid}
	}
	part := func(pid int, kind cronworker.Kind) cronworker.Entry {
		return cronworker.Entry{Kind: kind, PID: pid, Job: "job", Tick: int64(pid), Token: int64(5 * pid)}
	}
	ups := []cronworker.Entry{at(1, process(1, cronworker.Up)), at(1, process(2, cronworker.Up))}
	ends, over, refused := part(1, cronworker.End), part(1, cronworker.End), part(1, cronworker.End)
	over.Over, refused.Refused = true, true
	begins, follows := at(10, part(1, cronworker.Begin)), at(15, part(2, cronworker.Begin))
	wakes := at(6, process(1, cronworker.Resumed)) // after its claim, at 5
	stops, resumes := at(11, process(1, cronworker.Stopped)), at(18, process(1, cronworker.Resumed))
	for name, test := range map[string]struct {
		entries                    []cronworker.Entry
		overlaps, stale, unnoticed int
	}{
		"one after the other": {[]cronworker.Entry{begins, at(14, part(1, cronworker.End)), follows}, 0, 0, 0},
		"at the same time":    {[]cronworker.Entry{begins, follows, at(20, over)}, 1, 0, 0},
		"of one that died":    {[]cronworker.Entry{begins, at(11, process(1, cronworker.Killed)), follows}, 0, 0, 0},
		"that dies later":     {[]cronworker.Entry{begins, follows, at(20, process(1, cronworker.Killed))}, 1, 0, 0},
		"asleep, told":        {[]cronworker.Entry{begins, stops, follows, resumes, at(20, over)}, 0, 1, 0},
		"asleep, refused":     {[]cronworker.Entry{begins, stops, follows, resumes, at(20, refused)}, 0, 1, 0},
		"asleep, unnoticed":   {[]cronworker.Entry{begins, stops, follows, resumes, at(20, ends)}, 0, 1, 1},
		"asleep before":       {[]cronworker.Entry{wakes, begins, follows, at(20, over)}, 0, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storyOf(append(ups[:2:2], test.entries...))
			overlaps, stale, unnoticed := s.meetings("job")
			if overlaps != test.overlaps || stale != test.stale || unnoticed != test.unnoticed {
				t.Errorf("%d overlaps, %d stale, %d unnoticed, want %d, %d, %d", overlaps, stale, unnoticed, test.overlaps,
					test.stale, test.unnoticed)
			}
		})
	}
}
