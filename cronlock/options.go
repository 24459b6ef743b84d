package cronlock

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// Option configures a job or a wrapper: the options of this package, and core's that fit, such as [core.WithTTL] and
// [core.WithWait]. An invalid value is an error of the constructor, and so is an option that makes no sense there. The Option of
// all guards is one type, so guards can share a slice of options that all of them take.
type Option = guard.Option

func newOption(name string, set func(*config) error) Option {
	return guard.Own("cronlock."+name, set)
}

func newDuration(name string, d time.Duration, field func(*config) *time.Duration) Option {
	return guard.OwnDuration("cronlock."+name, d, field)
}

type config struct {
	guard.Config
	context  context.Context
	service  string
	overlaps bool          // runs of different ticks may be in progress at the same time
	deadline time.Duration // 0: by the period
	maxSkew  time.Duration
	attempts int
	catchUp  time.Duration
	history  int
	timeout  time.Duration  // 0: none
	leader   *core.Election // nil: any replica may run a tick
}

func newConfig(place guard.Place, opts []Option) (config, error) {
	c := config{
		context: context.Background(), service: thisService(),
		maxSkew: 30 * time.Second, attempts: 1, history: 20,
	}
	sorted, err := guard.Sort(place, opts, &c)
	if c.Config = sorted; err == nil && c.Given("WithZombieGrace") && c.timeout == 0 {
		err = invalid("WithZombieGrace without WithTimeout: no run is ever too long")
	}
	return c, err
}

// invalid returns a [core.ErrInvalidOption].
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: cronlock: "+format, append([]any{core.ErrInvalidOption}, args...)...)
}

// WithContext sets the parent of the contexts of runs. When it ends, no run begins, and the contexts of the runs in
// progress end. [cron.Cron.Stop] does not cancel runs. Defaults to [context.Background].
func WithContext(ctx context.Context) Option {
	return newOption("WithContext", func(c *config) error {
		if c.context = ctx; ctx == nil {
			return invalid("WithContext: the context is nil")
		}
		return nil
	})
}

// WithService sets the name of the service that the job belongs to. All replicas and versions of the service need the
// same. Two services with jobs of one name would take each other's ticks. So a replica that finds another service's
// record of its job logs a warning, and reports [IncidentMismatch]. The name of the service is no part of the name of the
// job. 1 to 100 bytes in one line. Defaults to the path of the main package, or else the name of the program.
func WithService(name string) Option {
	return newOption("WithService", func(c *config) error {
		switch {
		case name == "" || len(name) > mostService:
			return invalid("WithService: %d bytes, 1 to %d are allowed", len(name), mostService)
		case strings.ContainsAny(name, "\n\x00"):
			return invalid("WithService(%q): line breaks and NUL are not allowed", name)
		}
		c.service = name
		return nil
	})
}

// mostService is what the note of a record has room for, which core bounds to 256 bytes in all.
const mostService = 100

// AllowOverlap lets a tick run while an earlier run of the job is in progress. Not with [core.WithWait], which waits for the
// earlier run. Defaults to off: the tick is skipped.
func AllowOverlap() Option {
	return newOption("AllowOverlap", func(c *config) error {
		c.overlaps = true
		return nil
	})
}

// WithStartDeadline sets how late a tick may start: after a stall or an outage of Redis, or because it waits for an
// earlier run. A later one is skipped, see [WithCatchUp]. Give all replicas the same: a tick is remembered for twice as long. At
// most 8760 h. Defaults to half of the time to the next tick, at most 5 min, and at least 10 s, or with [WithFailover] a
// minute and twice the TTL.
func WithStartDeadline(limit time.Duration) Option {
	return newDuration("WithStartDeadline", limit, func(c *config) *time.Duration { return &c.deadline })
}

// WithMaxSkew sets how far the clock of a replica may be ahead of the clock of Redis. A replica that asks for a tick
// earlier is refused, and another replica runs the tick. A replica whose clock is behind asks late, see
// [WithStartDeadline]. A clock that is off by more than half of it, either way, is reported. At most 8760 h.
// Defaults to 30 s.
func WithMaxSkew(limit time.Duration) Option {
	return newDuration("WithMaxSkew", limit, func(c *config) *time.Duration { return &c.maxSkew })
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
	return newOption("WithFailover", func(c *config) error {
		if c.attempts = attempts; attempts < 1 {
			return invalid("WithFailover(%d): at least 1 attempt is needed", attempts)
		}
		return nil
	})
}

// WithCatchUp lets a replica run the latest tick that all replicas have missed, if it is not older than the window. It
// applies to a replica that starts, or that could not reach Redis in time, which claims the tick like any other. It
// does not apply to a job that has never run, or not for three periods of its schedule, nor to ticks during a pause.
// The schedule is the present one: if a deployment moves it to a time that has passed today, that tick counts as missed.
// Give all replicas the same window: Redis remembers ticks for twice as long. At most 8760 h. Defaults to none.
func WithCatchUp(window time.Duration) Option {
	return newDuration("WithCatchUp", window, func(c *config) *time.Duration { return &c.catchUp })
}

// mostHistory is the most that WithHistory allows.
const mostHistory = 10_000

// WithHistory sets how many periods of the schedule [JobHandle.History] covers: 1 to 10,000, and 30 days at most. It may cover
// more, because Redis remembers a tick for longer than it may start. Defaults to 20.
func WithHistory(periods int) Option {
	return newOption("WithHistory", func(c *config) error {
		if c.history = periods; periods < 1 || periods > mostHistory {
			return invalid("WithHistory(%d): 1 to 10000 are allowed", periods)
		}
		return nil
	})
}

// FailOpen runs a tick on every replica that could not claim it until its start deadline because Redis did not answer.
// Such a run has no lock, so it may overlap runs of other replicas. The replica does not run its tick again, and
// records it when Redis is back; then it is in the [JobHandle.History]. The log has an error for the first one, and
// then counts them. A Redis that serves no client at the moment counts as silent: LOADING, READONLY, BUSY. So may one
// whose answers are about a second late each, or more: a new connection needs several within 5 s. [Exclusive] with
// [core.WithWait] gives them 5 s, however short the wait.
//
// FailOpen does not apply if Redis refuses, because it is full or the user lacks a right. Nor does it apply if Redis
// has said that another run has the lock, and falls silent later. Nor does it apply if the last answer of Redis to this
// replica, at a tick, was that the job is paused: the tick is skipped as [Paused]. A replica that was started in the
// outage, or has met no tick since [JobHandle.Pause], cannot know of the pause, and runs the job. Defaults to off: the
// tick is skipped.
func FailOpen() Option { return guard.FailOpen() }

// WithTimeout sets how long a run may take. Then its context ends, with the cause [ErrTimeout]. If the function returns an
// error after that, the outcome is [TimedOut], which [WithFailover] does not run again. The client renews the lease until the
// function returns, for the time of [WithZombieGrace] at most. 1 ms to 8760 h; 0 is no limit. Defaults to no limit.
//
// [core.WithMaxHold] is another limit: it ends the lease and not only the run. No other run begins beside one that
// is too long for WithTimeout, but one may begin a TTL after the end of WithMaxHold, whether or not the function has returned.
// WithTimeout also applies to runs without a lease, see [FailOpen] and [Leader].
func WithTimeout(limit time.Duration) Option {
	if limit == 0 {
		return newOption("WithTimeout", func(c *config) error {
			c.timeout = 0
			return nil
		})
	}
	return newDuration("WithTimeout", limit, func(c *config) *time.Duration { return &c.timeout })
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
	case c.overlaps && c.Wait > 0:
		return invalid("core.WithWait with AllowOverlap: there is nothing to wait for")
	case c.overlaps && c.MinHold > 0:
		return invalid("core.WithMinHold with AllowOverlap: there is nothing to hold")
	case c.leader != nil && c.attempts > 1:
		return invalid("WithFailover with WithLeader: replicas that do not lead take over no run")
	case c.leader != nil && c.catchUp > 0:
		return invalid("WithCatchUp with WithLeader: a replica that starts does not lead yet")
	}
	return checkName(name)
}

// lockOptions are the options of the lock that keeps runs apart. The client's minimum hold time is not meant for jobs.
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
	if !c.overlaps {
		g.Once = guard.Without(g.Once, "core.WithMaxHold") // the lock has it, which a tick may wait for
	}
	g.Once = slices.Concat([]core.OnceOption{core.WithGroup()}, g.Once)
	g.FromProof = func(ask guard.Ask, _ []byte) []byte { // what was committed is the job's; the history has the run
		value, _ := Run{Outcome: Success, Tick: ask.Due}.value()
		return value
	}
	return g
}

var errNoClient = invalid("the client is nil: pass one of core.New")

// What the places take and refuse beside what [guard.ExclusiveTakes] and its like say.
var (
	commonOptions = []string{"cronlock.WithContext", "cronlock.WithService", "cronlock.WithTimeout"}
	jobOptions    = slices.Concat(guard.OnceTakes, commonOptions, []string{
		"core.WithMinHold", "WithZombieGrace",
		"cronlock.AllowOverlap", "cronlock.WithStartDeadline", "cronlock.WithMaxSkew", "cronlock.WithFailover",
		"cronlock.WithCatchUp", "cronlock.WithHistory", "cronlock.WithLeader",
	})
	exclusivePlace = guard.Place{
		Name:  "cronlock.Exclusive",
		Takes: slices.Concat(guard.ExclusiveTakes, commonOptions, []string{"WithZombieGrace"}),
		Refuses: map[string]string{
			"core.WithOwner":        "runs with one owner do not exclude each other",
			"cronlock.AllowOverlap": "nothing would be excluded",
			"cronlock.WithLeader":   "put cronlock.Leader before it in the chain",
			"OptionalKey":           noKeys, "WithKeySecret": noKeys,
		},
		Otherwise: "it keeps no record of ticks; cronlock.AddFunc does",
	}
	leaderPlace = guard.Place{
		Name: "cronlock.Leader", Takes: commonOptions, Otherwise: "it takes no lock and keeps no record; an election has options of its own",
	}
)

const noKeys = "the name of a job is no secret, and every job has one"

// jobPlace is a function that adds a job.
func jobPlace(name string) guard.Place {
	return guard.Place{
		Name:  name,
		Takes: jobOptions,
		Refuses: map[string]string{
			"core.WithRetention":     "a tick is remembered for as long as it could start again; cronlock.WithHistory keeps it longer",
			"core.WithFailurePolicy": "a failed run is not repeated; cronlock.WithFailover is for runners that crash",
			"core.WithFixedTTL":      "the lease of a run is renewed; cronlock.WithTimeout limits the run",
			"core.WithMaxValue":      "the record of a run has a fixed size",
			"core.WithPermits":       "one run at a time; cronlock.Exclusive takes a semaphore",
			"OptionalKey":            noKeys, "WithKeySecret": noKeys,
		},
	}
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
	if _, tooMany := ticksBetween(j.schedule, first, first.Add(kept), mostRemembered); tooMany {
		return invalid("job %q: %s(%v): more than %d ticks of this schedule would be remembered, "+
			"those of %v", j.name, option, window, mostRemembered, kept)
	}
	return nil
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
	return seal.FactsOf(j.locks).Client.TTL()
}
