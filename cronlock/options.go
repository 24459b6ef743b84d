package cronlock

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// Option configures a job or a wrapper: the options of this package, and those of core that fit, such as [core.WithTTL] and
// [core.WithWait]. An invalid value is an error of the constructor, and so is an option that makes no sense there. The Option of
// all guards is one type, so guards can share a slice of options that all of them take.
type Option = guard.Option

type option struct {
	seal.Mark
	apply func(*config)
}

func newOption(name string, apply func(*config)) Option {
	return option{seal.Mark{Name: "cronlock." + name}, apply}
}

// overlap says what happens to a tick while an earlier run of its job still goes on, on whichever replica.
type overlap int

const (
	overlapSkip overlap = iota
	overlapWait
	overlapAllow
)

type config struct {
	guard.Config
	context  context.Context
	service  string
	overlap  overlap
	deadline time.Duration // 0: by the period
	maxSkew  time.Duration
	attempts int
	catchUp  time.Duration
	history  int
	timeout  time.Duration  // 0: none
	leader   *core.Election // nil: any replica may run a tick
	err      error
}

func newConfig(place guard.Place, opts []Option) config {
	c := config{
		context: context.Background(), service: thisService(),
		maxSkew: 30 * time.Second, attempts: 1, history: 20,
	}
	sorted, err := place.Sort(opts, func(o Option) {
		if own, ok := o.(option); ok {
			own.apply(&c)
		} else if seal.MarkOf(o).Name == "core.WithWait" {
			c.overlap = overlapWait
		}
	})
	c.Config, c.err = sorted, cmp.Or(c.err, err)
	if c.overlap == overlapWait && c.Wait == 0 {
		c.overlap = overlapSkip
	}
	return c
}

func (c *config) refuse(format string, args ...any) {
	if c.err == nil {
		c.err = invalid(format, args...)
	}
}

// invalid returns a [core.ErrInvalidOption].
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: cronlock: "+format, append([]any{core.ErrInvalidOption}, args...)...)
}

// positive refuses a duration that makes no sense. No schedule has longer periods than the longest one.
func (c *config) positive(option string, d time.Duration) { c.between(option, d, guard.ShortestWait) }

// leastTime is enough for Redis to answer, and for a function to do anything.
const leastTime = 10 * time.Millisecond

func (c *config) between(option string, d, least time.Duration) {
	if d < least || d > longestPeriod {
		c.refuse("%s(%v): %v to %v are allowed%s", option, d, least, longestPeriod, guard.UnitHint(d))
	}
}

// WithContext sets the parent of the contexts of runs. When it ends, no run begins, and the contexts of the runs in
// progress end. [cron.Cron.Stop] does not cancel runs. Defaults to [context.Background].
func WithContext(ctx context.Context) Option {
	return newOption("WithContext", func(c *config) {
		if ctx == nil {
			c.refuse("WithContext: the context is nil")
		}
		c.context = ctx
	})
}

// WithService sets the name of the service that the job belongs to. All replicas and versions of the service need the
// same. Two services with jobs of one name would take each other's ticks. So a replica that finds another service's
// record of its job logs a warning, and reports [IncidentMismatch]. The name of the service is no part of the name of the
// job. 1 to 100 bytes in one line. Defaults to the path of the main package, or else to the name of the program.
func WithService(name string) Option {
	return newOption("WithService", func(c *config) {
		switch {
		case name == "" || len(name) > mostService:
			c.refuse("WithService: %d bytes, 1 to %d are allowed", len(name), mostService)
		case strings.ContainsAny(name, "\n\x00"):
			c.refuse("WithService(%q): line breaks and NUL are not allowed", name)
		}
		c.service = name
	})
}

// mostService is what the note of a record has room for, which core bounds to 256 bytes in all.
const mostService = 100

// AllowOverlap lets a tick run while an earlier run of the job is in progress. Of AllowOverlap and
// [core.WithWait], the last one counts. Defaults to skipping it.
func AllowOverlap() Option {
	return newOption("AllowOverlap", func(c *config) { c.overlap = overlapAllow })
}

// WithStartDeadline sets how late a tick may start: after a stall or an outage of Redis, or because it waits for an
// earlier run. A later one is skipped. If the host was suspended at the latest tick, the time counts from when it woke up.
// Give all replicas the same: a tick is remembered for twice as long. At most 366
// days. Defaults to half of the time to the next tick, at most 5 min, and at least 10 s, or with [WithFailover] a
// minute and twice the TTL.
func WithStartDeadline(limit time.Duration) Option {
	return newOption("WithStartDeadline", func(c *config) {
		c.between("WithStartDeadline", limit, leastTime)
		c.deadline = limit
	})
}

// WithMaxSkew sets how far the clock of a replica may be ahead of that of Redis. A replica that asks for a tick
// earlier is refused, and another replica runs the tick. A replica whose clock is behind asks late, see
// [WithStartDeadline]. A clock that is off by more than half of it, either way, is reported. At most 366 days.
// Defaults to 30 s.
func WithMaxSkew(limit time.Duration) Option {
	return newOption("WithMaxSkew", func(c *config) {
		c.positive("WithMaxSkew", limit)
		c.maxSkew = limit
	})
}

// WithFailover lets another replica run a tick if its runner crashed, lost its lease or was shut down before the end.
// It allows so many attempts in all, within the start deadline. The start deadline has to be longer than the TTL, and
// as long as the job for the job to be watched to its end. The tick may then start more than once, never twice at the
// same time by the lease, and each time with a greater fencing token. A job that fails, or takes longer than
// [WithTimeout], does not run again.
//
// [core.WithFailurePolicy] is another rule, which no job takes: it is about failed runs, and knows no number of attempts.
//
// The other replicas watch a run from the start of the tick on, so [cron.Cron.Stop] waits for that until the start deadline. The
// end of the context of [WithContext] ends it at once. A replica that starts watches unfinished ticks too. Defaults to 1: a tick
// whose runner crashed is lost.
func WithFailover(attempts int) Option {
	return newOption("WithFailover", func(c *config) {
		if attempts < 1 {
			c.refuse("WithFailover(%d): at least 1 attempt is needed", attempts)
		}
		c.attempts = attempts
	})
}

// WithCatchUp lets a replica run the latest tick that all replicas have missed, if it is not older than the window. It
// applies to a replica that starts, or that could not reach Redis in time, which claims the tick like any other. It
// does not apply to a job that has never run, or not for three periods of its schedule, nor to ticks during a pause.
// The schedule is the present one: if a deployment moves it to a time that has passed today, that tick counts as missed.
// Give all replicas the same window: Redis remembers ticks for twice as long. At most 366 days. Defaults to none.
func WithCatchUp(window time.Duration) Option {
	return newOption("WithCatchUp", func(c *config) {
		c.between("WithCatchUp", window, leastTime)
		c.catchUp = window
	})
}

// mostHistory is the most that WithHistory allows.
const mostHistory = 10_000

// WithHistory sets how many periods of the schedule [JobHandle.History] covers: 1 to 10,000, and 30 days at most. It may cover
// more, because Redis remembers a tick for longer than it may start. Defaults to 20.
func WithHistory(periods int) Option {
	return newOption("WithHistory", func(c *config) {
		if periods < 1 || periods > mostHistory {
			c.refuse("WithHistory(%d): 1 to 10000 are allowed", periods)
		}
		c.history = periods
	})
}

// FailOpen runs a tick on every replica that could not claim it until its start deadline because Redis did not answer.
// Such a run has no lock, so it may overlap runs of other replicas. The replica does not run its tick again, and records it
// when Redis is back; then it is in the [JobHandle.History]. The log has an error for the first one, and then counts them. A Redis that serves no client at the moment counts as silent: LOADING, READONLY, BUSY. So
// may one whose answers are about a second late each, or more: a new connection needs several within 5 s. [Exclusive] with
// [core.WithWait] gives them 5 s, however short the wait.
//
// FailOpen does not apply if Redis refuses, because it is full or the user lacks a right. Nor does it apply if Redis has
// said that another run has the lock, and falls silent later. Nor does it apply if the last answer of Redis to this
// replica, at a tick, was that the job is paused: the tick is skipped as [Paused]. A replica that was started in the
// outage, or has met no tick since [JobHandle.Pause], cannot know of the pause, and runs the job. Defaults to skipping the tick.
func FailOpen() Option { return guard.FailOpen() }

// WithTimeout sets how long a run may take. Then its context ends, with the cause [ErrTimeout]. If the function returns an
// error after that, the outcome is [TimedOut], which [WithFailover] does not run again. The client renews the lease until the
// function returns, for the time of [WithZombieGrace] at most. 1 ms to 8760 h; 0 is no limit. Defaults to no limit.
//
// [core.WithMaxHold] is another limit: it ends the lease and not only the run. No other run begins beside one that
// is too long for WithTimeout, but one may begin a TTL after the end of WithMaxHold, whether or not the function has returned.
// WithTimeout also applies to runs without a lease, see [FailOpen] and [Leader].
func WithTimeout(limit time.Duration) Option {
	return newOption("WithTimeout", func(c *config) {
		if limit != 0 {
			c.positive("WithTimeout", limit)
		}
		c.timeout = limit
	})
}

// WithZombieGrace sets how long the lease of a run with a [WithTimeout] is renewed after its context has ended while the function
// continues. After that the lease expires, and the next tick may start beside the function on another replica; in this process it
// does not. Defaults to 2 min.
func WithZombieGrace(grace time.Duration) Option { return guard.WithZombieGrace(grace) }

// check finds what is wrong with the arguments of a job.
func (c *config) check(locks *core.Client, name string) error {
	switch {
	case locks == nil:
		return errNoClient
	case c.err != nil:
		return c.err
	case c.overlap == overlapAllow && c.MinHold > 0:
		return invalid("core.WithMinHold with AllowOverlap: there is nothing to hold")
	case c.leader != nil && c.attempts > 1:
		return invalid("WithFailover with WithLeader: replicas that do not lead take over no run")
	case c.leader != nil && c.catchUp > 0:
		return invalid("WithCatchUp with WithLeader: a replica that starts does not lead yet")
	}
	if err := c.checkGrace(); err != nil {
		return err
	}
	return checkName(name)
}

// lockOptions are those of the lock that keeps runs apart. The client's minimum hold time is not meant for jobs.
func (c *config) lockOptions() []core.LockOption {
	return slices.Concat([]core.LockOption{core.WithMinHold(0)}, c.Lock)
}

// guarded is the config of the guard.
func (c *config) guarded() guard.Config {
	g := c.Config
	if c.timeout == 0 {
		g.ZombieGrace = 0 // no run is ever too long
	}
	g.FailurePolicy = core.HoldFailures
	if c.attempts > 1 {
		g.FailurePolicy = core.RetryFailures // the others watch, to take over from a runner that is not heard of any more
	}
	if c.overlap != overlapAllow {
		g.Once = guard.Without(g.Once, "core.WithMaxHold") // the lock has it, which a tick may wait for
	}
	g.Once = slices.Concat([]core.OnceOption{core.WithGroup()}, g.Once)
	return g
}

func (c *config) checkGrace() error {
	if c.Given("WithZombieGrace") && c.timeout == 0 {
		return invalid("WithZombieGrace without WithTimeout: no run is ever too long")
	}
	return nil
}

var errNoClient = invalid("the client is nil: pass that of core.New")

var (
	commonOptions = []string{
		"cronlock.WithContext", "cronlock.WithService", "cronlock.WithTimeout",
	}
	lockOptions = []string{
		"core.WithTTL", "core.WithWait", "core.WithMaxHold", "core.WithMinHold", "core.WithReplicaAck",
		"FailOpen", "WithZombieGrace",
	}
	jobOptions = slices.Concat(commonOptions, lockOptions, []string{
		"cronlock.AllowOverlap", "cronlock.WithStartDeadline", "cronlock.WithMaxSkew", "cronlock.WithFailover",
		"cronlock.WithCatchUp", "cronlock.WithHistory", "cronlock.WithLeader", "core.WithProof",
	})
)

// jobPlace is a function that adds a job.
func jobPlace(name string) guard.Place {
	return guard.Place{
		Name:  name,
		Takes: jobOptions,
		Refuses: map[string]string{
			"core.WithRetention":     "a tick is remembered for as long as it could start again; cronlock.WithHistory keeps it longer",
			"core.WithFailurePolicy": "a failed run is not repeated; cronlock.WithFailover is for runners that crash",
			"core.WithFixedTTL":      "the lease of a run is renewed; cronlock.WithTimeout limits the run",
			"core.WithOwner":         "every run has an owner of its own",
			"core.WithPermits":       "one run at a time; cronlock.Exclusive takes a semaphore",
		},
	}
}

var exclusivePlace = guard.Place{
	Name:  "cronlock.Exclusive",
	Takes: slices.Concat(commonOptions, lockOptions, []string{"core.WithFixedTTL", "core.WithPermits"}),
	Refuses: map[string]string{
		"core.WithOwner":        "runs with one owner do not exclude each other",
		"cronlock.AllowOverlap": "nothing would be excluded",
		"cronlock.WithLeader":   "put cronlock.Leader before it in the chain",
	},
	Otherwise: "it keeps no record of ticks; cronlock.AddFunc does",
}

var leaderPlace = guard.Place{
	Name: "cronlock.Leader", Takes: commonOptions, Otherwise: "it takes no lock and keeps no record; an election has options of its own",
}

// mostRemembered bounds how many ticks of a job are remembered for the sake of options.
const mostRemembered = 20_000

// checkWindow refuses options that would fill Redis: a tick is remembered for twice the time in which it may start, and
// for the time by which a clock may be ahead. The answer is the same at every time of the day: ticks are counted from
// the first one after a fixed time.
func (j *job) checkWindow(now time.Time) error {
	first := j.schedule.Next(anchor(now.Location()))
	if first.IsZero() {
		if first = j.schedule.Next(now); first.IsZero() {
			return nil
		}
	}
	option, window := "WithStartDeadline", j.deadline(first)
	if j.config.catchUp > window {
		option, window = "WithCatchUp", j.config.catchUp
	}
	kept := 2*window + j.config.maxSkew
	if j.config.maxSkew > 2*window {
		option, window = "WithMaxSkew", j.config.maxSkew
	}
	if tooDense(j.schedule, first, kept) {
		return invalid("job %q: %s(%v): more than %d ticks of this schedule would be remembered, "+
			"those of %v", j.name, option, window, mostRemembered, kept)
	}
	return nil
}

// tooDense reports whether there are too many ticks within so long after one.
func tooDense(s cron.Schedule, tick time.Time, window time.Duration) bool {
	end := tick.Add(window)
	for range mostRemembered {
		next := s.Next(tick)
		if !isDue(next, end) || !next.After(tick) {
			return false
		}
		tick = next
	}
	return true
}

// checkFailover refuses a deadline until which no other replica could notice that a runner has died.
func (j *job) checkFailover() error {
	if limit := j.config.deadline; j.config.attempts > 1 && limit > 0 && limit <= j.ttl() {
		return invalid("job %q: WithFailover(%d) with WithStartDeadline(%v): no other replica can "+
			"take over, because the lease of a crashed runner expires after %v", j.name, j.config.attempts, limit, j.ttl())
	}
	return nil
}

func (j *job) ttl() time.Duration {
	if j.config.TTL > 0 || j.locks == nil {
		return j.config.TTL
	}
	return seal.FactsOf(j.locks).TTL
}
