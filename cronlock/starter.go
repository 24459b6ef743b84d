package cronlock

import (
	"slices"
	"sync"
	"time"

	"github.com/robfig/cron/v3"
)

// starter is the entry that tells the jobs of a cron when the scheduler begins. It is one for all of them, because each
// entry costs the scheduler time.
type starter struct {
	*oneTime

	startMu sync.Mutex
	jobs    []*job // nil once it has run
	at      time.Time
	asked   time.Time // for the last time
}

// await lets the scheduler begin the job.
func (j *job) await() {
	for _, entry := range j.cron.Entries() {
		if s, ok := entry.Job.(*starter); ok && s.enlist(j) {
			return
		}
	}
	s := &starter{jobs: []*job{j}}
	s.oneTime = newOneTime(j.cron, s.start)
	s.add(s, s)
}

// enlist returns false if the starter has run.
func (s *starter) enlist(j *job) bool {
	s.startMu.Lock()
	defer s.startMu.Unlock()
	if s.jobs == nil {
		return false
	}
	s.jobs = append(s.jobs, j)
	return true
}

// Next remembers when the scheduler has begun. The scheduler asks then, and again, soon after, when it has started the
// entry: by that time a tick may be due, which must not count as one from before. Others may ask long before.
func (s *starter) Next(t time.Time) time.Time {
	const soon = 5 * time.Second
	if !t.After(time.Now()) {
		s.startMu.Lock()
		if t.Sub(s.asked) > soon {
			s.at = t
		}
		s.asked = t
		s.startMu.Unlock()
	}
	return s.oneTime.Next(t)
}

func (s *starter) start() {
	s.startMu.Lock()
	jobs, at := slices.Clone(s.jobs), s.at
	s.jobs = nil
	s.startMu.Unlock()
	for _, j := range jobs {
		from := latestOf(at, j.progress.added).In(j.cron.Location())
		j.progress.begin(from)
		go j.begin(from)
	}
}

func latestOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

var _ cron.Schedule = (*starter)(nil)
