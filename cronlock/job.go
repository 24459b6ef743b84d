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
	"github.com/holdfast-go/holdfast/internal/outage"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// job is what the scheduler starts.
type job struct {
	name     string
	locks    *core.Client
	fn       func(context.Context) error
	config   config
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
	memory   outage.Memory              // of a job that fails open

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
	switch j.run(newTick(at, j.latest(at)), claimed) {
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

// patience bounds the asking for a tick.
func (j *job) patience(t tick) (context.Context, context.CancelFunc) {
	limit := min(max(t.deadline-time.Since(t.time), leastPatience), t.deadline)
	return context.WithTimeout(j.config.context, limit)
}

// run runs a tick if this replica is to do it, and returns why not. It returns no reason for a tick that it has watched. It calls
// claimed before a run that this replica has claimed.
func (j *job) run(t tick, claimed func()) string {
	if j.outlivesLease() {
		j.skip(t, Overlapping, errHere)
		return Overlapping
	}
	if err := j.leads(); err != nil {
		reason := notLeading(err)
		j.skip(t, reason, err)
		return reason
	}
	patience, cancel := j.patience(t)
	defer cancel()
	attempt, reason, err := j.claim(patience, t, 0)
	watched := reason == Taken && errors.Is(err, core.ErrInProgress) && j.config.attempts > 1
	if watched {
		attempt, reason, err = j.watch(patience, t)
	}
	switch {
	case attempt != nil:
		claimed()
		j.start(attempt, t)
	case reason == Unavailable && j.config.FailOpen && !watched:
		return j.runUnclaimed(t, err)
	default:
		j.compare(t.time, err)
		j.skip(t, reason, err)
	}
	if watched {
		return ""
	}
	return reason
}

// watch waits for the end of a run on another replica, to take the tick over if its lease expires or is given up.
func (j *job) watch(patience context.Context, t tick) (*core.Attempt, string, error) {
	attempt, reason, err := j.claim(patience, t, t.deadline)
	if attempt == nil {
		return nil, reason, err
	}
	if j.isListed() {
		return attempt, "", nil
	}
	// Another replica is to take it over, at once and with the same number of attempts left.
	_ = seal.AttemptOf(attempt).Withdraw(context.WithoutCancel(patience))
	return nil, Stopped, errRemoved
}

// isListed reports whether the job was not removed from its cron.
func (j *job) isListed() bool {
	current, there := find(j.cron, j.name)
	return there && current == j
}

var errRemoved = errors.New("holdfast: cronlock: the job was removed from its cron")

// start runs a tick that this replica has claimed.
func (j *job) start(attempt *core.Attempt, t tick) {
	left := t.time.Add(t.deadline).Sub(seal.AttemptOf(attempt).Began()) // by the clock of Redis
	patience, cancel := context.WithTimeout(j.config.context, left)
	defer cancel()
	_ = j.execute(j.config.context, patience, attempt, t, j.config.attempts)
}

// runUnclaimed runs a tick without Redis, see [FailOpen]. The error is why it could not be claimed.
func (j *job) runUnclaimed(t tick, unavailable error) string {
	if j.config.overlap != overlapAllow {
		leave, err := j.enter(j.config.context, 0)
		if err != nil {
			j.skip(t, Overlapping, err)
			return Overlapping
		}
		defer leave()
	}
	end, err := j.memory.Enter(outage.Question{Key: tickKey(j.name, t.time)}, unavailable)
	if err != nil {
		reason, _ := j.refused(j.config.context, err)
		j.skip(t, reason, err)
		return reason
	}
	defer end()
	run := j.newRun(t.time)
	run.Deadline = t.time.Add(t.deadline)
	began, err := j.lead(j.config.context, &run, func(ctx context.Context) error {
		j.warnOfUnguarded(ctx, t.time, unavailable)
		ctx, cancel := j.limit(ctx, func() {})
		defer cancel()
		return j.call(ctx, t, run, j.recordLate)
	})
	if !began {
		j.skip(t, notLeading(err), err)
		return notLeading(err)
	}
	return ""
}

// recordLate has a run that began without Redis recorded when Redis is back. Until then the tick does not run again here. What
// was interrupted is left to others, if they may try.
func (j *job) recordLate(run Run) core.State {
	if run.Outcome == Interrupted && j.config.attempts > 1 {
		return core.StateNone
	}
	j.memory.Ended(tickKey(j.name, run.Tick), outage.End{
		State: core.StateCompleted, Value: run.encode(), Note: j.identity.note(),
		Until: time.Now().Add(j.retention(run.Tick)),
		Once: func(retention time.Duration) *core.Once {
			return j.locks.Once(tickKey(j.name, run.Tick), j.options(core.WithRetention(retention))...)
		},
		Failed: func(err error) { j.warnUnrecorded(withRun(context.Background(), run), run.Tick, err) },
	})
	return core.StateCompleted
}

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
	t := newTick(time.Now(), 0)
	kept := rememberedFor(j.config.history, currentPeriod(j.schedule, t.time.In(j.cron.Location())))
	retention := core.WithRetention(max(kept, time.Hour))
	attempt, err := j.locks.Once(nowKey(j.name, rand.Text()), j.options(retention)...).Begin(ctx)
	if err != nil {
		return err
	}
	return j.execute(ctx, ctx, attempt, t, 1)
}

// until returns a context with the values of ctx that ends with it, or with one of the others.
func until(ctx context.Context, others ...context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stops := make([]func() bool, len(others))
	for i, other := range others {
		stops[i] = context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel(nil)
	}
}
