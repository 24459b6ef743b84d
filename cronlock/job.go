package cronlock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
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
	watch    *watch                     // of the cron, shared by its jobs; nil for the wrappers
	lock     *core.Lock                 // that keeps its ticks apart; nil for the wrappers
	slot     chan struct{}              // full while the function runs in this process
	current  atomic.Pointer[core.Lease] // of that run, nil if there is none

	lastPaused atomic.Bool  // the last answer of Redis to whether the job is paused, false before the first answer
	catching   atomic.Bool  // it looks for missed ticks
	helped     atomic.Int64 // until when a helper starts the job, in ns since 1970; 0 if there is none

	skewLogged atomic.Int64 // when it last logged that the clock is off, in ns since 1970
	registered atomic.Int64 // when it was last registered, likewise
	mismatched atomic.Int64 // when it last logged another identity, likewise
}

// newJob has no schedule yet. It reports what the client, lock or election with these facts reports.
func newJob(name string, fn func(context.Context) error, config config, facts seal.Facts) *job {
	return &job{
		name: name, fn: fn, config: config, hooks: guard.HooksOf(facts), logger: facts.Logger, replica: facts.Instance,
		slot: make(chan struct{}, 1),
	}
}

// now is the time in the zone in which a schedule without one of its own is read.
func (j *job) now() time.Time { return time.Now().In(j.cron.Location()) }

// entry returns the entry of the job, and false if it was removed from its cron.
func (j *job) entry() (cron.Entry, bool) {
	found, entry := firstJob(j.cron, func(other *job) bool { return other == j })
	return entry, found != nil
}

// Next implements [cron.Schedule]. The result depends on t alone. When the scheduler begins, it asks for the first tick: from then on
// ticks are expected, and the job is registered. See [progress.begin] for others who ask.
func (j *job) Next(t time.Time) time.Time {
	if j.progress.begin(j.schedule, t, time.Now()) {
		j.registerSoon()
	}
	return j.schedule.Next(t)
}

// Run is called by the scheduler, on a goroutine of its own, when a tick is due.
func (j *job) Run() {
	due := j.progress.due(j.schedule, j.now, j.deadline)
	if late := due.late > lateStart; (late || len(due.ticks) == 0) && elapsed(&j.watch.looked, time.Now(), lateStart) {
		j.watch.look(j.cron, late)
	}
	defer j.runTicks(due.ticks) // also if a hook panics
	j.reportMissed(due)
}

// runTicks handles ticks one after the other, the rest also if one of them panics.
func (j *job) runTicks(ticks []time.Time) {
	if len(ticks) == 0 {
		return
	}
	defer j.runTicks(ticks[1:])
	j.runTick(ticks[0])
}

// runTick handles a tick.
func (j *job) runTick(at time.Time) {
	reason := j.run(at, j.deadline(at))
	if reason == "" || elapsed(&j.registered, time.Now(), refreshInterval) {
		j.registerSoon() // also if Redis has lost the registration
	}
	switch reason {
	case Late, Unavailable, Refused, Undecided:
		j.catchUp()
	}
}

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
// wrong, and the clock of Redis decides.
const leastPatience = 5 * time.Second

// run runs a tick if this replica is to do it, and returns why it could not be claimed. It returns no reason for a tick that it
// has claimed or watched.
func (j *job) run(at time.Time, deadline time.Duration) string {
	e := j.newExecution(j.config.context, tick{at, deadline})
	patience, cancel := context.WithTimeout(e.base, min(max(deadline-time.Since(at), leastPatience), deadline))
	defer cancel()
	e.patience, e.attempts = patience, j.config.attempts
	_, _ = j.guard.Do(e.base, e.ask(), e.handle(e.around))
	if e.watched || e.granted {
		return ""
	}
	return e.not.reason
}

var errRemoved = errors.New("holdfast: cronlock: the job was removed from its cron")

// runNow runs the job out of turn. Its record is no tick's, so nobody else comes for it.
func (j *job) runNow(ctx context.Context) error {
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
	ask.KeyHash = guard.Hash(nil, ask.Name)
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

// work describes a tick to hooks.
func (j *job) work(at time.Time) core.Work {
	w := core.Work{Place: "cron", Label: j.name, Due: at}
	if j.schedule != nil && !at.IsZero() {
		w.KeyHash = guard.Hash(nil, tickKey(j.name, at))
	}
	return w
}

// errTickMissed is the error of a tick for which nothing was asked of Redis.
var errTickMissed = errors.New("holdfast: cronlock: the scheduler missed the tick")

// reportMissed reports ticks that the scheduler has missed and that are too late.
func (j *job) reportMissed(due pending) {
	n := len(due.passed)
	if n == 0 {
		return
	}
	j.logger.Warn("holdfast: cronlock: ticks missed", "job", j.shown(), "ticks", n, "more", due.more,
		"first", due.passed[0], "last", due.passed[n-1])
	for _, at := range due.passed {
		j.hooks.NotRun(j.config.context, core.NotRun{Work: j.work(at), Reason: Late, Err: errTickMissed})
	}
}

// retention is how long the record of a tick is kept: for longer than anyone may come for the tick, so that a forgotten one is
// always too late; and a failed-over master whose clock is behind has the same time once more.
func (j *job) retention(tick time.Time) time.Duration {
	retention := max(rememberedFor(j.config.history, period(j.schedule, tick)), 2*max(j.deadline(tick), j.config.catchUp)+j.config.maxSkew)
	if j.config.catchUp > 0 {
		retention = max(retention, 3*period(j.schedule, tick)) // so that there is a last tick to catch up from
	}
	return whole(retention)
}

// rememberedFor is how long [JobHandle.History] has a tick, at most.
func rememberedFor(history int, each time.Duration) time.Duration {
	const most = 30 * 24 * time.Hour
	if each > most/time.Duration(max(history, 1)) {
		return most
	}
	return whole(time.Duration(history) * each)
}

// whole rounds up to milliseconds, in which Redis counts, and to the least that it takes.
func whole(d time.Duration) time.Duration {
	return max((d + time.Millisecond - 1).Truncate(time.Millisecond), 10*time.Millisecond)
}

// The keys of a job share a hash tag: in a Cluster they lie together, and its records are a group.

func groupOf(name string) string { return "cron:{" + name + "}" }

// tickKey identifies a tick by its time on the schedule, not by when somebody came for it.
func tickKey(name string, tick time.Time) string {
	return groupOf(name) + ":at:" + tick.UTC().Format(time.RFC3339Nano)
}

// tickOf reads the tick from the key of its record, false if that is of something else.
func tickOf(name, key string) (time.Time, bool) {
	text, ok := strings.CutPrefix(key, groupOf(name)+":at:")
	if !ok {
		return time.Time{}, false
	}
	tick, err := time.Parse(time.RFC3339Nano, text)
	return tick, err == nil
}

func nowKey(name, id string) string { return groupOf(name) + ":now:" + id }

// registry is the group of the records of all jobs. A job of that name has no keys that begin with this.
const registry = "cron:{holdfast:cronlock:jobs}:job:"

func jobKey(name string) string { return registry + name }

// elapsed reports whether so much time has passed since last, which is then set to now. It returns true for one caller
// of several.
func elapsed(last *atomic.Int64, now time.Time, interval time.Duration) bool {
	before := last.Load()
	return now.Sub(time.Unix(0, before)).Abs() > interval && last.CompareAndSwap(before, now.UnixNano())
}
