package cronlock

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/robfig/cron/v3"
)

// clocks notices that the wall clock was set, or that the host was suspended, for all jobs of a cron. The scheduler does
// not: its timers run on a clock that stops in a suspend, and it computes them from the wall clock, so after a step back it
// sleeps for the whole step.
//
// A timer looks every few seconds while the cron has jobs. It does not keep the cron alive, and there is no goroutine
// between two looks.
type clocks struct {
	cron weak.Pointer[cron.Cron]

	mu    sync.Mutex
	read  func() sample
	last  sample
	slept sleep // the last suspend
}

// sample is a reading of all clocks.
type sample struct {
	reading
	suspended time.Duration // how long the host has been suspended since it was started
	known     bool          // suspended is
}

// readSample reads the clocks one after the other, and once more if the process was stopped or the host suspended between
// two of them: that would pass for a clock that was set.
func readSample() (s sample) {
	for range 10 {
		before, _ := suspendedFor()
		s.reading = readClocks()
		s.suspended, s.known = suspendedFor()
		if (s.suspended - before).Abs() < leastStep/10 {
			break
		}
	}
	return s
}

// sleep is a suspend of the host, by its wall clock: from the last look before it until the first one after it.
type sleep struct{ from, until time.Time }

// The interval is how long a job may sleep after a step or a suspend.
const (
	lookInterval = 5 * time.Second
	// leastStep tells a clock that was set from one that is slewed, or read late on a busy machine.
	leastStep = time.Second
)

func newClocks(c *cron.Cron) *clocks {
	return &clocks{cron: weak.Make(c), read: readSample, last: readSample()}
}

func (w *clocks) await() {
	time.AfterFunc(lookInterval, func() {
		w.look()
		if w.needed() {
			w.await()
		}
	})
}

// needed reports whether the cron still exists and has jobs of these clocks.
func (w *clocks) needed() bool {
	c := w.cron.Value()
	if c == nil {
		return false
	}
	_, there := firstJob(c, func(j *job) bool { return j.clocks == w })
	return there
}

// look compares the clocks. If one was set, or the host was suspended, it reports that, and lets jobs and scheduler follow.
func (w *clocks) look() {
	set, slept := w.compare()
	if set == 0 && slept == 0 {
		return
	}
	c := w.cron.Value()
	if c == nil {
		return
	}
	reported := false
	for _, entry := range c.Entries() {
		j, ok := entry.Job.(*job)
		if !ok {
			continue
		}
		if !reported {
			j.warnOfClock(set, slept)
		}
		reported = true
		if set < 0 {
			j.progress.setBack(time.Now())
		}
	}
	bridgeAll(c)
	reschedule(c)
}

// warnOfClock reports what has happened to the clocks of the host, for all jobs of a cron.
func (j *job) warnOfClock(set, slept time.Duration) {
	if slept != 0 {
		j.logger.Warn("holdfast: cronlock: this host was suspended", "for", slept.Round(time.Millisecond))
	}
	if set != 0 {
		j.logger.Warn("holdfast: cronlock: the clock of this host was set, and the schedules follow it", "by", set.Round(time.Millisecond))
	}
}

// compare returns by how much the wall clock was set since the last look, and how long the host was suspended.
func (w *clocks) compare() (set, slept time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last, now := w.last, w.read()
	w.last = now
	from, until := last.wall.Round(0), now.wall.Round(0)
	set = until.Sub(from) - (now.monotonic - last.monotonic)
	if slept = now.suspended - last.suspended; !now.known {
		slept = max(set, 0) // nothing tells a suspend from a clock that was set forward
	}
	if set -= slept; set.Abs() < leastStep {
		set = 0
	}
	if slept < leastStep {
		return set, 0
	}
	if from.Sub(w.slept.until).Abs() < 2*lookInterval { // awake only for a moment
		from = w.slept.from
	}
	w.slept = sleep{from, until}
	return set, slept
}

// sinceTick returns the time from a tick to the end of the suspend in which it was due, 0 if it was due in none.
func (w *clocks) sinceTick(tick time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !tick.After(w.slept.from) || tick.After(w.slept.until) {
		return 0
	}
	return w.slept.until.Sub(tick)
}

// reschedule makes the scheduler look at its clock again. After a stall it believes the time for which its timer was
// set, and would sleep a whole period too long. It sets its timer anew when an entry is removed, also if there is none
// with that number: those of entries begin at 1.
func reschedule(c *cron.Cron) { c.Remove(0) }

// bridge is an entry beside that of a job that sleeps too long, since its next tick was computed before the clock was set
// back. It starts the job for the ticks until then, and removes itself. Redis decides which of them are run again.
type bridge struct {
	job   *job
	of    cron.EntryID
	until time.Time
	id    chan cron.EntryID // has room for one
}

// bridgeAll adds the bridges that the jobs of a cron need, instead of those that it has.
func bridgeAll(c *cron.Cron) {
	for _, entry := range c.Entries() {
		switch j := entry.Job.(type) {
		case *bridge:
			c.Remove(entry.ID)
		case *job:
			b := &bridge{job: j, of: entry.ID, until: entry.Next, id: make(chan cron.EntryID, 1)}
			if b.over() {
				continue
			}
			id := c.Schedule(b, b)
			b.id <- id
			if b.over() { // its ticks have passed, or it was about to remove itself
				c.Remove(id)
			}
		}
	}
}

// over reports whether there is no tick left that the entry of the job passes over.
func (b *bridge) over() bool { return b.Next(time.Now().In(b.job.cron.Location())).IsZero() }

// Next returns the next tick that the entry of the job passes over.
func (b *bridge) Next(t time.Time) time.Time {
	if next := b.job.schedule.Next(t); next.Before(b.until) {
		return next
	}
	return time.Time{}
}

// Run is called by the scheduler. It does nothing if the entry was removed, or has computed its next tick again since.
func (b *bridge) Run() {
	sleeps := b.job.cron.Entry(b.of).Next.Equal(b.until)
	if !sleeps || b.over() {
		id := <-b.id
		b.job.cron.Remove(id)
		b.id <- id
	}
	if sleeps {
		b.job.Run()
	}
}

// skewed compares the clocks. Redis read its own at some time between asked and answered, by that of this replica.
func (j *job) skewed(at, asked, answered, server time.Time) {
	offset := clockOffset(asked, answered, server)
	if offset.Abs() <= j.config.maxSkew/2 {
		return
	}
	const silence = 10 * time.Minute // enough to find it in a log; the hook is called each time
	if elapsed(&j.skewLogged, answered, silence) {
		j.logger.Warn("holdfast: cronlock: the clock of this replica differs from Redis's; if all replicas say so, look at "+
			"Redis", "job", j.shown(), "offset", offset, "max", j.config.maxSkew)
	}
	side := "ahead of"
	if offset < 0 {
		side = "behind"
	}
	j.incident(j.config.context, at, IncidentSkew, fmt.Errorf("holdfast: cronlock: the clock of this replica is %v %s that of Redis",
		offset.Abs(), side))
}

// clockOffset is how far the clock of this replica is ahead for certain: a slow answer is no skew.
func clockOffset(asked, answered, server time.Time) time.Duration {
	least, most := asked.Sub(server), answered.Sub(server)
	switch {
	case least > 0:
		return least
	case most < 0:
		return most
	}
	return 0
}

// elapsed reports whether so much time has passed since last, which is then set to now. It returns true for one caller
// of several.
func elapsed(last *atomic.Int64, now time.Time, interval time.Duration) bool {
	before := last.Load()
	return now.Sub(time.Unix(0, before)).Abs() > interval && last.CompareAndSwap(before, now.UnixNano())
}
