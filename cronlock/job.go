package cronlock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// job is what the scheduler starts.
type job struct {
	name     string
	locks    *core.Client
	fn       func(context.Context) error
	config   config
	guard    *guard.Once // of its ticks; nil for the wrappers
	hooks    guard.Hooks
	logger   *slog.Logger
	replica  string // the instance of the client
	cron     *cron.Cron
	schedule cron.Schedule
	identity identity
	progress progress
	clocks   *clocks                    // of the cron, shared by its jobs; nil for the wrappers
	slot     chan struct{}              // full while the function runs in this process
	current  atomic.Pointer[core.Lease] // of that run, nil if there is none

	lastPaused  atomic.Bool   // the last answer of Redis to whether the job is paused, false before the first answer
	catching    atomic.Bool   // it looks for missed ticks
	rescheduled *atomic.Int64 // when the scheduler was last rescheduled, in ns since 1970; shared by the jobs of a cron

	skewLogged atomic.Int64 // when it last logged that the clock is off, in ns since 1970
	registered atomic.Int64 // when it was last registered, likewise
	compared   atomic.Int64 // when it last read a record to compare identities, likewise
	mismatched atomic.Int64 // when it last logged another identity, likewise
}

// newJob has no schedule yet. It reports what the client, lock or election with these facts reports.
func newJob(name string, fn func(context.Context) error, config config, facts seal.Facts) *job {
	return &job{
		name: name, fn: fn, config: config, hooks: guard.HooksOf(facts), logger: facts.Logger, replica: facts.Instance,
		slot: make(chan struct{}, 1), rescheduled: new(atomic.Int64),
	}
}

// Next implements [cron.Schedule]. It is pure for those who list ticks. When the scheduler begins, it asks for the first tick: from
// then on ticks are expected, and the job is registered.
func (j *job) Next(t time.Time) time.Time {
	if j.progress.begin(t, time.Now()) {
		j.refresh()
	}
	return j.schedule.Next(t)
}

// Run is called by the scheduler, on a goroutine of its own, when a tick is due.
func (j *job) Run() {
	j.clocks.look() // before the timer does, if the host has just woken up
	due := j.progress.advance(j.schedule, j.cron.Location(), readClocks, j.deadline)
	if due.late > lateStart && elapsed(j.rescheduled, time.Now(), lateStart) {
		reschedule(j.cron)
	}
	defer j.comeFor(due.ticks) // also if a hook panics
	j.passOver(due)
}

// lateStart is how late the scheduler is only after a stall, and not because the machine is busy.
const lateStart = time.Second

// comeFor handles ticks one after the other, the rest also if one of them panics.
func (j *job) comeFor(ticks []time.Time) {
	if len(ticks) == 0 {
		return
	}
	defer j.comeFor(ticks[1:])
	j.come(ticks[0])
}

// come handles a tick.
func (j *job) come(at time.Time) {
	claimed := j.restore
	if j.refresh() {
		claimed = func() {}
	}
	switch j.run(at, j.latest(at), claimed) {
	case Late, Unavailable, Refused:
		j.catchUp()
	}
}

// latest is how late a tick may start that is due now: its start deadline counts from the end of the suspend if it was
// due while the host was suspended, unless later ticks were due too.
func (j *job) latest(tick time.Time) time.Duration {
	asleep := j.clocks.sinceTick(tick)
	if asleep > j.longestSleep(tick) {
		asleep = 0
	}
	return asleep + j.deadline(tick)
}

// longestSleep is how long before the end of a suspend the latest tick can have been. Redis remembers ticks for longer.
func (j *job) longestSleep(tick time.Time) time.Duration {
	return min(period(j.schedule, tick), mostSleep)
}

const mostSleep = 30 * 24 * time.Hour

// deadline is how late a tick may start.
func (j *job) deadline(tick time.Time) time.Duration {
	if j.config.deadline > 0 {
		return j.config.deadline
	}
	least := leastDeadline
	if j.config.attempts > 1 {
		least = max(leastFailover, 2*j.ttl())
	}
	return max(min(period(j.schedule, tick)/2, mostDeadline), least)
}

const (
	leastDeadline = 10 * time.Second
	mostDeadline  = 5 * time.Minute
	// leastFailover is enough to notice that a runner has died soon after it began, with the default TTL.
	leastFailover = time.Minute
)

// leastPatience is how long Redis is asked for a tick that is too late by the clock of this replica: the clock may be
// wrong, and that of Redis decides.
const leastPatience = 5 * time.Second

// run runs a tick if this replica is to do it, and returns why it could not be claimed. It returns no reason for a tick that it
// has watched. It calls claimed before a run that this replica has claimed.
func (j *job) run(at time.Time, deadline time.Duration, claimed func()) string {
	e := j.newExecution(j.config.context, tick{at, deadline})
	patience, cancel := context.WithTimeout(e.base, min(max(deadline-time.Since(at), leastPatience), deadline))
	defer cancel()
	e.patience, e.attempts, e.claimed = patience, j.config.attempts, claimed
	_, _ = j.guard.Do(e.base, e.ask(), e.handle(e.around))
	if e.watched || e.granted {
		return ""
	}
	return e.not.reason
}

// isListed reports whether the job was not removed from its cron.
func (j *job) isListed() bool {
	current, there := find(j.cron, j.name)
	return there && current == j
}

var errRemoved = errors.New("holdfast: cronlock: the job was removed from its cron")

// now runs the job out of turn. Its record is no tick's, so nobody else comes for it.
func (j *job) now(ctx context.Context) error {
	if j.config.context.Err() != nil {
		return fmt.Errorf("holdfast: cronlock: job %q: stopped: %w", j.name, context.Cause(j.config.context))
	}
	if err := j.leads(); err != nil {
		return fmt.Errorf("holdfast: cronlock: job %q: %w", j.name, err)
	}
	ctx, cancel := until(ctx, j.config.context)
	defer cancel()
	e := j.newExecution(ctx, tick{time: time.Now()})
	kept := rememberedFor(j.config.history, currentPeriod(j.schedule, e.tick.time.In(j.cron.Location())))
	ask := guard.Ask{
		Work: j.work(e.tick.time), Name: nowKey(j.name, rand.Text()), Note: j.identity.note(), Retention: max(kept, time.Hour),
		Once: []core.OnceOption{core.WithFailurePolicy(core.HoldFailures)},
		Turn: func(ctx context.Context, ask request) error {
			if err := ask(ctx, 0); err != nil {
				return e.because(err)
			}
			return nil
		},
	}
	ask.KeyHash = hashOf(ask.Name)
	if _, err := j.guard.Do(ctx, ask, e.handle(e.around)); err != nil {
		return err
	}
	return e.err
}

// until returns a context with the values of ctx that ends with it, or with the other one.
func until(ctx, other context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}
