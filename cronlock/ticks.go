package cronlock

import (
	"context"
	"sync"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
)

// progress remembers the latest tick that a job has handled, because the scheduler starts a job without a tick. Next may be called by
// anyone, so it does not show the tick either, and the clock alone shows neither ticks that the scheduler has missed nor a tick
// for which the job was started twice.
type progress struct {
	mu      sync.Mutex
	start   time.Time // of the scheduler, or when the job was added if that is not known
	begun   bool      // the former
	handled time.Time // the latest tick that was handled, or from when on ticks are expected
	ran     bool      // a tick was handled
	before  time.Time // handled before the last change by expect; zero without one
}

// pending is the work of a job that was started.
type pending struct {
	ticks  []time.Time   // to be claimed, the earliest first
	passed []time.Time   // missed by the scheduler and too late, the earliest first
	more   bool          // there were more of these
	late   time.Duration // since the earliest of all
}

const (
	// mostClaimed bounds how many missed ticks are claimed after a stall.
	mostClaimed = 100
	// mostPassed bounds how many are reported one by one.
	mostPassed = 10_000
)

// add sets from when on ticks are expected if the job is started before the scheduler begins.
func (p *progress) add(now time.Time) { p.start, p.handled = now, now }

// begin sets from when on ticks are expected, and returns true, if the scheduler asks for the first time: it asks with the time of
// its clock. A tick that was handled already stays the latest one. Before the scheduler begins, a page that lists the next ticks may
// have asked in the same way. So an ask that finds ticks which did not start the job counts as the first one.
func (p *progress) begin(s cron.Schedule, asked, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ran || now.Sub(asked).Abs() > time.Second {
		return false
	}
	if p.begun {
		p.expect(s, asked)
		return false
	}
	p.start, p.begun, p.handled = asked, true, latestOf(p.handled, asked)
	return true
}

// expect expects ticks from then on, if an earlier one has not started the job for longer than a busy machine needs. The scheduler asks
// like that too, after it has started the job for a tick to which it is late, because it slept. So what was expected before is kept.
func (p *progress) expect(s cron.Schedule, asked time.Time) {
	if tick := s.Next(p.handled.In(asked.Location())); !tick.IsZero() && asked.Sub(tick) > lateStart {
		p.start, p.before, p.handled = asked, p.handled, asked
	}
}

// expectedFrom returns after which time ticks are due. It returns the time before the last change by expect if no tick has come since
// the change: then the scheduler has started the job before it asked.
func (p *progress) expectedFrom(s cron.Schedule, now time.Time) time.Time {
	from := p.handled.In(now.Location())
	if next := s.Next(from); !p.ran && !p.before.IsZero() && (next.IsZero() || next.After(now)) {
		return p.before.In(now.Location())
	}
	return from
}

func (p *progress) started() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.start
}

func latestOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// due returns what is due and was not handled, and marks it as handled. The clock is read here, so that of two goroutines the
// second one to come does not have the earlier time.
func (p *progress) due(s cron.Schedule, clock func() time.Time, deadline func(tick time.Time) time.Duration) pending {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := clock()
	from := p.expectedFrom(s, now)
	if from.Sub(now) > lateStart { // the clock was set back: Redis decides, by its own clock
		latest := latestTick(s, now)
		if latest.IsZero() {
			return pending{}
		}
		from = latest.Add(-1)
	}
	ticks, more := ticksBetween(s, from, now, mostPassed)
	if len(ticks) == 0 {
		return pending{}
	}
	p.ran = true
	due := pending{more: more, late: now.Sub(ticks[0])}
	last := ticks[len(ticks)-1]
	oldest := now.Add(-deadline(last))
	if more { // those in between are not reported
		recent, _ := ticksBetween(s, latestOf(last, oldest), now, mostPassed)
		ticks = append(ticks, recent...)
	}
	first := len(ticks) - 1 // Redis decides about the latest one
	for first > 0 && len(ticks)-first < mostClaimed && ticks[first-1].After(oldest) {
		first--
	}
	due.passed, due.ticks, p.handled = ticks[:first], ticks[first:], ticks[len(ticks)-1]
	return due
}

// begin handles ticks from before the scheduler began.
func (j *job) begin() {
	defer j.catchUp() // also if a run panics
	if j.config.attempts > 1 {
		j.runTicks(j.unfinished())
	}
}

// unfinished returns the ticks from before this replica began that were begun, not finished, and may still start: all replicas
// that watched them may have ended together with the runner.
func (j *job) unfinished() (ticks []time.Time) {
	began := j.progress.started().In(j.cron.Location())
	latest := latestTick(j.schedule, began)
	if latest.IsZero() {
		return nil
	}
	deadline := j.deadline(latest)
	ctx, cancel := context.WithTimeout(j.config.context, deadline)
	defer cancel()
	all, _ := ticksBetween(j.schedule, began.Add(-deadline), began, mostRemembered)
	for _, tick := range all[max(len(all)-mostClaimed, 0):] {
		var record core.Record
		err := untilAnswered(ctx, func() (err error) {
			record, err = j.locks.Once(tickKey(j.name, tick)).Peek(ctx)
			return err
		})
		released := record.State == core.StateNone && record.Attempt > 0
		if err == nil && (released || record.State == core.StateRunning || record.State == core.StateAbandoned) {
			ticks = append(ticks, tick)
		}
	}
	return ticks
}

// catchUp runs the latest tick that all replicas have missed, if there is one.
func (j *job) catchUp() {
	if tick, ok := j.missedTick(); ok {
		j.run(tick, j.config.catchUp)
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
	now := j.now()
	ticks, _ := ticksBetween(j.schedule, latestOf(last.In(now.Location()), now.Add(-j.config.catchUp)), now, mostRemembered)
	if len(ticks) == 0 {
		return tick, false
	}
	tick = ticks[len(ticks)-1]
	j.logger.Info("holdfast: cronlock: catching up", "job", j.shown(), "missed", len(ticks), "tick", tick)
	return tick, true
}

// last returns the latest tick that any replica has claimed, or that a pause has kept from running, zero if there is
// none. What was run out of turn is no tick.
func (j *job) last(ctx context.Context) (last time.Time, err error) {
	err = untilAnswered(ctx, func() error {
		records, err := j.locks.GroupRecords(ctx, groupOf(j.name))
		if last = latest(j.name, records); err != nil || last.IsZero() {
			return err
		}
		p, err := readPauses(ctx, j.locks, j.name)
		last = latestOf(last, p.last.until)
		return err
	})
	return last, err
}

func latest(name string, records []core.Record) (last time.Time) {
	for _, r := range records {
		if tick, ok := tickOf(name, r.Key); ok && tick.After(last) {
			last = tick
		}
	}
	return last
}
