package cronlock

import (
	"sync"
	"time"

	"github.com/robfig/cron/v3"
)

// latestTick returns the latest tick that is not after now, zero if there is none for years. It calls Next O(log n)
// times for n ticks. The zone of now is that in which a schedule without one of its own is read.
func latestTick(s cron.Schedule, now time.Time) time.Time {
	tick := time.Time{}
	for span := time.Second; tick.IsZero(); span *= 2 {
		if span > longestLookBack {
			return tick
		}
		if next := s.Next(now.Add(-span)); isDue(next, now) {
			tick = next
		}
	}
	for none := now; ; { // no tick is known to be after none
		next := s.Next(tick)
		if !isDue(next, now) || !next.After(tick) {
			return tick
		}
		tick = next
		middle := tick.Add(none.Sub(tick) / 2)
		if next := s.Next(middle); isDue(next, now) && next.After(tick) {
			tick = next
		} else {
			none = middle
		}
	}
}

// longestLookBack is the time within which robfig's schedules look for a tick.
const longestLookBack = 5 * 366 * 24 * time.Hour

func isDue(tick, now time.Time) bool { return !tick.IsZero() && !tick.After(now) }

// ticksBetween returns the ticks after from that are not after until, the earliest first, and whether there are more
// than most.
func ticksBetween(s cron.Schedule, from, until time.Time, most int) (ticks []time.Time, more bool) {
	for tick := s.Next(from); isDue(tick, until) && tick.After(from); tick = s.Next(tick) {
		if len(ticks) == most {
			return ticks, true
		}
		ticks, from = append(ticks, tick), tick
	}
	return ticks, false
}

// progress remembers which ticks of a job were handled. Why: the scheduler starts a job without a tick. Its Next may be
// called by anyone, so the tick cannot be learned from there, and the clock alone tells neither of ticks that the
// scheduler has passed over nor of a tick for which the job was started twice.
type progress struct {
	added time.Time // the job, before its first tick

	mu      sync.Mutex
	began   time.Time // the scheduler; zero before
	handled time.Time // the latest tick that was handled, zero before the first
	before  time.Time // the latest one that was handled before the clock was set back
	looked  reading   // of the clocks, for the last time
}

// reading is that of the wall clock, and of one that cannot be set.
type reading struct {
	wall      time.Time
	monotonic time.Duration
}

var processStart = time.Now()

func readClocks() reading {
	now := time.Now()
	return reading{now, now.Sub(processStart)}
}

// pending is the work of a job that was started.
type pending struct {
	ticks  []time.Time   // to be claimed, the earliest first
	passed []time.Time   // passed over by the scheduler and too late, the earliest first
	more   bool          // there were more of these
	late   time.Duration // since the earliest of all
}

const (
	// mostClaimed bounds how many ticks that were passed over are claimed after a stall.
	mostClaimed = 100
	// mostPassed bounds how many are reported one by one.
	mostPassed = 10_000
)

// begin sets from when on ticks are expected, and returns true, if the scheduler asks for the first time: it asks with the time of
// its clock. A tick that was handled already stays the latest one.
func (p *progress) begin(asked, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.began.IsZero() || now.Sub(asked).Abs() > time.Second {
		return false
	}
	p.began = asked
	if p.handled.IsZero() {
		p.handled = p.began
	}
	return true
}

// start returns when the scheduler has begun, or the job was added if that is not known.
func (p *progress) start() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return latestOf(p.began, p.added)
}

func latestOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// setBack makes ticks due again when the clock comes to them again: Redis may have refused them as too early, and knows
// those that have run.
func (p *progress) setBack(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.looked = reading{}
	if p.handled.After(now) {
		p.before, p.handled = latestOf(p.before, p.handled), now
	}
}

// advance returns what is due and was not handled, and marks it as handled. The clocks are read here, so that of two
// goroutines the second one to come does not have the earlier time.
func (p *progress) advance(s cron.Schedule, zone *time.Location, read func() reading,
	deadline func(tick time.Time) time.Duration,
) pending {
	p.mu.Lock()
	defer p.mu.Unlock()
	clocks := read()
	now, steady := clocks.wall.In(zone), clocks.wall.In(zone)
	if !p.looked.wall.IsZero() { // what the wall clock would show if it had not been set since
		steady = p.looked.wall.Round(0).Add(clocks.monotonic - p.looked.monotonic).In(zone)
	}
	p.looked = clocks
	if p.handled.IsZero() {
		first := latestTick(s, now)
		if first.IsZero() || !first.After(p.added) {
			return pending{} // the scheduler has not started the job
		}
		p.handled = first
		return pending{ticks: []time.Time{first}, late: now.Sub(first)}
	}
	ticks, more := ticksBetween(s, p.handled.In(zone), now, mostPassed)
	if len(ticks) == 0 {
		ticks = p.afterStepBack(s, now, steady)
	}
	if len(ticks) == 0 {
		return pending{}
	}
	due := split(s, ticks, more, now, deadline)
	for len(due.passed) > 0 && !due.passed[0].After(p.before) { // what became of these was reported
		due.passed = due.passed[1:]
	}
	p.handled = due.ticks[len(due.ticks)-1]
	return due
}

// afterStepBack returns what is due although nothing new is by the clock. Either the job was started twice for a tick,
// or the clock was set back: after the scheduler has looked at it, or before it was started again. Redis decides about
// the ticks, by its own clock.
func (p *progress) afterStepBack(s cron.Schedule, now, steady time.Time) []time.Time {
	ticks, more := ticksBetween(s, p.handled.In(now.Location()), steady, mostClaimed)
	if more {
		ticks = []time.Time{latestTick(s, steady)}
	}
	latest := latestTick(s, now)
	if next := s.Next(latest); !latest.IsZero() && isDue(next, p.handled) { // next was handled
		ticks = append([]time.Time{latest}, ticks...)
	}
	return ticks
}

// split tells apart the ticks that may still start, and those that are too late.
func split(
	s cron.Schedule, ticks []time.Time, more bool, now time.Time, deadline func(time.Time) time.Duration,
) pending {
	due := pending{more: more, late: now.Sub(ticks[0])}
	oldest := now.Add(-deadline(ticks[len(ticks)-1]))
	if more { // those in between are not reported
		if last := ticks[len(ticks)-1]; last.After(oldest) {
			oldest = last
		}
		if recent, _ := ticksBetween(s, oldest, now, mostPassed); len(recent) > 0 {
			ticks = append(ticks, recent...)
		} else {
			ticks = append(ticks, latestTick(s, now))
		}
	}
	first := len(ticks) - 1 // Redis decides about the latest one
	for first > 0 && len(ticks)-first < mostClaimed && ticks[first-1].After(oldest) {
		first--
	}
	due.passed, due.ticks = ticks[:first], ticks[first:]
	return due
}
