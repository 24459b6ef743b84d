package cronlock

import (
	"sync/atomic"
	"time"
	"weak"

	"github.com/robfig/cron/v3"
)

// watch notices that the scheduler of a cron sleeps for too long, for all its jobs. The scheduler computes its timer from the wall
// clock, and does not look at that again until the timer has fired. So it sleeps for too long after the clock was set, in either
// direction, after a suspend of the host, in which timers stand still, and after a stall, in which it believes the time for which
// its timer was set.
//
// A timer looks every few seconds while the cron has jobs. It does not keep the cron alive, and there is no goroutine
// between two looks.
type watch struct {
	cron   weak.Pointer[cron.Cron]
	looked atomic.Int64 // when a job last looked, in ns since 1970
}

const (
	// lookInterval is how long a job may sleep for too long.
	lookInterval = 5 * time.Second
	// lateStart is how late the scheduler is only if it slept for too long, and not because the machine is busy.
	lateStart = time.Second
)

func (w *watch) await() {
	time.AfterFunc(lookInterval, func() {
		if c := w.cron.Value(); c != nil && w.look(c, false) {
			w.await()
		}
	})
}

// look wakes the scheduler if it is late, or if the caller knows that it is. Jobs whose entries have computed their next tick before
// the clock was set back get helpers. It returns false if the cron has no jobs that share this watch.
func (w *watch) look(c *cron.Cron, late bool) (needed bool) {
	now := time.Now().In(c.Location())
	for _, entry := range c.Entries() {
		j, ok := entry.Job.(*job)
		if !ok || j.watch != w {
			continue
		}
		needed = true
		if entry.Next.IsZero() {
			continue // the scheduler has not begun, or there is no tick to come
		}
		late = late || now.Sub(entry.Next) > lateStart
		if next := j.schedule.Next(now); next.Before(entry.Next) && j.helped.Swap(entry.Next.UnixNano()) != entry.Next.UnixNano() {
			j.help(entry.Next)
		}
	}
	if late {
		// The scheduler sets its timer anew when an entry is removed, also if there is none with that number: entries begin at 1.
		c.Remove(0)
	}
	return needed
}

// helper is an entry beside a job's own, which starts the job when the own entry does not, and removes itself.
type helper struct {
	job   *job
	until time.Time // for how long the entry of the job sleeps; zero for the beginning of the scheduler
	added time.Time
	over  atomic.Bool
	id    chan cron.EntryID // has room for one
}

// help adds an entry that starts the job for the ticks until then, to which its entry does not come because the clock was set back.
// Redis decides which of them are run again. If until is zero, the entry lets the job handle ticks from before the scheduler began.
// The work goes through the wrappers of the cron, which recover panics, and [cron.Cron.Stop] waits for it.
func (j *job) help(until time.Time) {
	h := &helper{job: j, until: until, added: time.Now(), id: make(chan cron.EntryID, 1)}
	h.id <- j.cron.Schedule(h, h)
}

// Next returns zero when the helper is over. At the beginning it is soon, and later and later until the work has begun: the scheduler
// asks again when it has started the entry, which a wrapper may hold back, and when it was stopped before.
func (h *helper) Next(t time.Time) time.Time {
	const soonest, latest = 10 * time.Millisecond, time.Second
	switch {
	case h.over.Load():
		return time.Time{}
	case h.until.IsZero():
		return t.Add(min(max(t.Sub(h.added), soonest), latest))
	}
	if next := h.job.schedule.Next(t); next.Before(h.until) {
		return next
	}
	return time.Time{}
}

// Run is called by the scheduler.
func (h *helper) Run() {
	entry, listed := h.job.entry()
	start := h.job.Run
	switch {
	case !listed, !h.until.IsZero() && !entry.Next.Equal(h.until): // the entry has computed its next tick again
		h.over.Store(true)
		start = func() {}
	case !h.until.IsZero():
	case h.over.CompareAndSwap(false, true):
		start = h.job.begin
	default:
		return
	}
	if h.Next(h.job.now()).IsZero() {
		h.job.helped.Store(0)
		id := <-h.id
		h.job.cron.Remove(id)
		h.id <- id
	}
	start()
}
