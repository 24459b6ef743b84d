package cronlock

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
)

// catchUp runs the latest tick that all replicas have missed, if there is one.
func (j *job) catchUp() {
	if tick, ok := j.missedTick(); ok {
		j.run(tick, j.config.catchUp, func() {})
	}
}

// missedTick looks for the latest tick that all replicas have missed. It asks Redis until there is an answer.
func (j *job) missedTick() (tick time.Time, ok bool) {
	if j.config.catchUp <= 0 || !j.catching.CompareAndSwap(false, true) {
		return tick, false
	}
	defer j.catching.Store(false)
	ctx, cancel := context.WithTimeout(j.config.context, j.config.catchUp)
	defer cancel()
	last, err := j.last(ctx)
	if err != nil {
		j.logger.Warn("holdfast: cronlock: cannot catch up", "job", j.shown(), "error", err)
		return tick, false
	}
	if last.IsZero() {
		return tick, false // it has never run, or not for so long that nobody knows
	}
	zone := j.cron.Location()
	now := time.Now().In(zone)
	if oldest := now.Add(-j.config.catchUp); last.Before(oldest) {
		last = oldest
	}
	tick, n := missed(j.schedule, last.In(zone), now)
	if n == 0 {
		return tick, false
	}
	j.logger.Info("holdfast: cronlock: catching up", "job", j.shown(), "missed", n, "tick", tick)
	return tick, true
}

// last returns the latest tick that any replica has claimed, or that a pause has kept from running, zero if there is
// none. What was run out of turn is no tick.
func (j *job) last(ctx context.Context) (last time.Time, err error) {
	err = untilAnswered(ctx, func() (err error) {
		last, err = j.lastNow(ctx)
		return err
	}, unlessClosed)
	return last, err
}

func (j *job) lastNow(ctx context.Context) (time.Time, error) {
	records, err := j.locks.GroupRecords(ctx, groupOf(j.name))
	if err != nil {
		return time.Time{}, err
	}
	last := latest(j.name, records)
	if last.IsZero() {
		return last, nil
	}
	p, err := readPauses(ctx, j.locks, j.name)
	return latestOf(last, p.last.until), err
}

func latest(name string, records []core.Record) (last time.Time) {
	for _, r := range records {
		if tick, ok := tickOf(name, r.Key); ok && tick.After(last) {
			last = tick
		}
	}
	return last
}

// starter is an entry that starts a job once, when the scheduler begins, and removes itself. Only jobs that look for ticks from
// before have one: see [WithFailover] and [WithCatchUp]. The work goes through the wrappers of the cron, which recover panics,
// and [cron.Cron.Stop] waits for it.
type starter struct {
	job  *job
	id   chan cron.EntryID // has room for one
	over atomic.Bool       // it has run

	mu    sync.Mutex
	asked int
}

// await lets the scheduler start the job once when it begins.
func (j *job) await() {
	s := &starter{job: j, id: make(chan cron.EntryID, 1)}
	s.id <- j.cron.Schedule(s, s)
}

// Next is soon, and later and later until the work has begun: the scheduler asks again when it has started the entry, which a
// wrapper may hold back, and when it was stopped before.
func (s *starter) Next(t time.Time) time.Time {
	const first, longest = 10 * time.Millisecond, time.Second
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over.Load() {
		return time.Time{}
	}
	delay := first << s.asked
	if delay < longest {
		s.asked++
	}
	return t.Add(delay)
}

// Run is called by the scheduler.
func (s *starter) Run() {
	if !s.over.CompareAndSwap(false, true) {
		return
	}
	s.job.cron.Remove(<-s.id)
	if s.job.isListed() {
		s.job.begin()
	}
}

// begin handles ticks from before the scheduler began.
func (j *job) begin() {
	defer j.catchUp() // also if a run panics
	if j.config.attempts > 1 {
		j.comeFor(j.unfinished())
	}
}

// unfinished returns the ticks from before this replica began that were begun, not finished, and may still start: all replicas
// that watched them may have ended together with the runner.
func (j *job) unfinished() (ticks []time.Time) {
	began := j.progress.start().In(j.cron.Location())
	latest := latestTick(j.schedule, began)
	if latest.IsZero() {
		return nil
	}
	deadline := j.deadline(latest)
	ctx, cancel := context.WithTimeout(j.config.context, deadline)
	defer cancel()
	all, _ := ticksBetween(j.schedule, began.Add(-deadline), began, mostRemembered)
	for _, tick := range all[max(len(all)-mostClaimed, 0):] {
		if j.isUnfinished(ctx, tick) {
			ticks = append(ticks, tick)
		}
	}
	return ticks
}

// isUnfinished reports whether a tick was begun and not finished, by the last replica that has claimed it. It asks until there
// is an answer.
func (j *job) isUnfinished(ctx context.Context, tick time.Time) bool {
	var record core.Record
	err := untilAnswered(ctx, func() (err error) {
		record, err = j.locks.Once(tickKey(j.name, tick)).Peek(ctx)
		return err
	}, unlessClosed)
	released := record.State == core.StateNone && record.Attempt > 0
	return err == nil && (released || record.State == core.StateRunning || record.State == core.StateAbandoned)
}
