//go:build unix

package cronworker_test

import (
	"time"

	"github.com/holdfast-go/holdfast/tests/storms/cronworker"
)

// run is one run of a job, as the journal tells it.
type run struct {
	cronworker.Entry           // its begin
	until            time.Time // its end, or its process's; zero if it continues
	over             bool      // its context, when it ended
	refused          bool      // one of its writes
}

// claimed returns when Redis granted the run, of which its token is made.
func (r *run) claimed() time.Time { return time.UnixMicro(r.Token) }

// story is what the journal tells of processes and runs.
type story struct {
	signals map[int][]cronworker.Entry // of processes: up, stop, continue, kill
	runs    map[string][]*run          // of jobs
}

func storyOf(entries []cronworker.Entry) story {
	s := story{map[int][]cronworker.Entry{}, map[string][]*run{}}
	open := map[cronworker.Entry]*run{}
	for _, e := range entries {
		key := cronworker.Entry{PID: e.PID, Job: e.Job, Tick: e.Tick, Attempt: e.Attempt, Token: e.Token}
		switch e.Kind {
		case cronworker.Begin:
			open[key] = &run{Entry: e, refused: e.Refused}
			s.runs[e.Job] = append(s.runs[e.Job], open[key])
		case cronworker.End:
			r := open[key]
			delete(open, key)
			r.until, r.over, r.refused = e.At, e.Over, r.refused || e.Refused
		case cronworker.Up, cronworker.Stopped, cronworker.Resumed, cronworker.Killed:
			s.signals[e.PID] = append(s.signals[e.PID], e)
		case cronworker.Skip:
		}
	}
	for _, r := range open {
		if last := s.signals[r.PID][len(s.signals[r.PID])-1]; last.Kind == cronworker.Killed {
			r.until = last.At
		}
	}
	return s
}

// starts counts the runs of each tick.
func (s story) starts(job string) map[int64]int {
	n := make(map[int64]int)
	for _, r := range s.runs[job] {
		n[r.Tick]++
	}
	return n
}

// slept reports whether a process was stopped at some time from one to another.
func (s story) slept(pid int, from, to time.Time) bool {
	stopped := false
	for _, e := range s.signals[pid] {
		if e.At.After(to) {
			break
		}
		stopped = e.Kind == cronworker.Stopped
		if stopped && !e.At.Before(from) || e.Kind == cronworker.Resumed && !e.At.Before(from) {
			return true
		}
	}
	return stopped
}

// meetings returns how often two runs of a job were at work at the same time, and how many continued, or began, after their
// process had been stopped and another one had followed. Those are told by their context, or their writes are refused, or
// they are unnoticed.
func (s story) meetings(job string) (overlaps, stale, unnoticed int) {
	late := make(map[*run]bool)
	runs := s.runs[job]
	for i, b := range runs {
		for _, a := range runs[:i] {
			if !a.until.IsZero() && !b.At.Before(a.until) {
				continue // it had ended
			}
			switch {
			case s.woke(a, b.At):
				late[a] = true
			case s.woke(b, b.At):
				late[b] = true
			default:
				overlaps++
			}
		}
	}
	for r := range late {
		stale++
		if !r.over && !r.refused && !r.until.IsZero() && !s.died(r) {
			unnoticed++
		}
	}
	return overlaps, stale, unnoticed
}

// woke reports whether the process of a run was stopped after its claim.
func (s story) woke(r *run, until time.Time) bool { return s.slept(r.PID, r.claimed(), until) }

// died reports whether the run ended with its process.
func (s story) died(r *run) bool {
	signals := s.signals[r.PID]
	last := signals[len(signals)-1]
	return last.Kind == cronworker.Killed && last.At.Equal(r.until)
}

// awake reports whether a process was up and running all the time from one to another.
func (s story) awake(pid int, from, to time.Time) bool {
	up := false
	for _, e := range s.signals[pid] {
		if e.At.After(from) {
			up = up && e.At.After(to)
			break
		}
		up = e.Kind == cronworker.Up || e.Kind == cronworker.Resumed
	}
	return up
}

// settle is for how long a scheduler has to be running before its ticks are counted on: after a stop it comes late for
// two of them.
const settle = 4 * time.Second

// covered reports whether some replica was there for a tick.
func (s story) covered(tick int64, offsets map[string]time.Duration) bool {
	for pid, signals := range s.signals {
		comes := time.Unix(tick, 0).Add(-offsets[signals[0].Replica])
		if s.awake(pid, comes.Add(-settle), comes.Add(time.Second)) {
			return true
		}
	}
	return false
}
