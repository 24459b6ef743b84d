package cronlock

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/robfig/cron/v3"
)

// oneTime is an entry of a cron that is due at once, runs one time and removes itself. What runs this way goes through
// the wrappers of the cron, which recover panics, and [cron.Cron.Stop] waits for it.
type oneTime struct {
	cron *cron.Cron
	work func()
	id   chan cron.EntryID // has room for one

	begun chan struct{} // closed when the work begins

	mu    sync.Mutex
	over  bool // it has begun, or must not any more
	asked int
}

func newOneTime(c *cron.Cron, work func()) *oneTime {
	return &oneTime{cron: c, work: work, id: make(chan cron.EntryID, 1), begun: make(chan struct{})}
}

// add lists it in the cron.
func (o *oneTime) add(s cron.Schedule, job cron.Job) cron.EntryID {
	id := o.cron.Schedule(s, job)
	o.id <- id
	return id
}

// Next is later and later until the work has begun: the scheduler asks again when it has started the job, which a
// wrapper may hold back, and when it was stopped before.
func (o *oneTime) Next(t time.Time) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return time.Time{}
	}
	delay := time.Millisecond << o.asked
	if delay < time.Second {
		o.asked++
	}
	return t.Add(delay)
}

// take reports whether the caller is the first one to decide about the work.
func (o *oneTime) take() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	first := !o.over
	o.over = true
	return first
}

// Run is called by the scheduler.
func (o *oneTime) Run() {
	if !o.take() {
		return
	}
	close(o.begun)
	o.cron.Remove(<-o.id)
	o.work()
}

// launch lets the scheduler start work and returns nil once it has begun. It fails if the cron does not run or ctx ends
// before, and the work is not done then.
func launch(ctx context.Context, c *cron.Cron, work func()) error {
	o := newOneTime(c, work)
	id := o.add(o, o)
	err := o.await(ctx)
	if err == nil || !o.take() {
		return nil
	}
	c.Remove(id)
	return err
}

// launch lets the scheduler start work for the job, as above, unless the job was removed from its cron.
func (j *job) launch(ctx context.Context, work func()) error {
	if current, there := find(j.cron, j.name); !there || current != j {
		return errRemoved
	}
	return launch(ctx, j.cron, work)
}

// await waits until the work has begun. It looks now and then whether the cron was stopped.
func (o *oneTime) await(ctx context.Context) error {
	for isRunning(o.cron) {
		if begun, err := o.awaitFor(ctx, time.Second); begun || err != nil {
			return err
		}
	}
	return errStopped
}

func (o *oneTime) awaitFor(ctx context.Context, limit time.Duration) (begun bool, err error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-o.begun:
		return true, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-timer.C:
		return false, nil
	}
}

var (
	errStopped = errors.New("holdfast: cronlock: the cron is stopped")
	errRemoved = errors.New("holdfast: cronlock: the job was removed from its cron")
)

// isRunning reports whether the scheduler runs. Only the scheduler asks an entry for its next tick, before it takes the
// request to remove it.
func isRunning(c *cron.Cron) bool {
	p := new(probe)
	c.Remove(c.Schedule(p, p))
	return p.asked.Load()
}

type probe struct{ asked atomic.Bool }

// Next is never.
func (p *probe) Next(time.Time) time.Time {
	p.asked.Store(true)
	return time.Time{}
}

// Run is not called.
func (p *probe) Run() {}

// reschedule makes the scheduler look at its clock again. After a stall it believes the time for which its timer was
// set, and would sleep a whole period too long. It sets its timer anew when an entry is removed, also if there is none
// with that number: those of entries begin at 1.
func reschedule(c *cron.Cron) { c.Remove(0) }
