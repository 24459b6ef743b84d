package cronlock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
)

// Option configures a job. An invalid value is reported when the job is added.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (o optionFunc) apply(c *config) { o(c) }

// overlap says what happens to a tick while an earlier run of its job still goes on, on whichever replica.
type overlap int

const (
	overlapSkip overlap = iota
	overlapWait
	overlapAllow
)

type config struct {
	parser   cron.ScheduleParser
	context  context.Context
	logger   *slog.Logger
	hooks    Hooks
	replica  string
	service  string
	overlap  overlap
	wait     time.Duration
	deadline time.Duration // 0: by the period
	maxSkew  time.Duration
	attempts int
	catchUp  time.Duration
	history  int
	failOpen bool
	minHold  time.Duration
	maxHold  time.Duration
	grace    time.Duration // 0: the default
	ttl      time.Duration // 0: that of the client
	lock     []core.LockOption
	err      error
}

func newConfig(opts []Option) config {
	c := config{
		context: context.Background(), logger: slog.Default(), replica: thisReplica(), service: thisService(),
		maxSkew: 30 * time.Second, attempts: 1, history: 20,
	}
	for _, opt := range opts {
		if opt != nil {
			opt.apply(&c)
		}
	}
	if c.err == nil {
		c.err = core.CheckOptions(c.lock...)
	}
	return c
}

func (c *config) refuse(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("holdfast: cronlock: "+format, args...)
	}
}

// positive refuses a duration that makes no sense. No schedule has longer periods than the longest one.
func (c *config) positive(option string, d time.Duration) { c.between(option, d, 1) }

// leastTime is enough for Redis to answer, and for a function to do anything.
const leastTime = 10 * time.Millisecond

func (c *config) between(option string, d, least time.Duration) {
	if d < least || d > longestPeriod {
		c.refuse("%s(%v): %v to %v are allowed", option, d, least, longestPeriod)
	}
}

func thisReplica() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	pid := ":" + strconv.Itoa(os.Getpid())
	return host[:min(len(host), mostReplica-len(pid))] + pid
}

// WithParser sets what reads the spec. Defaults to the parser of the [cron.Cron].
func WithParser(parser cron.ScheduleParser) Option {
	return optionFunc(func(c *config) {
		if parser == nil {
			c.refuse("WithParser: the parser is nil")
		}
		c.parser = parser
	})
}

// WithContext sets the context from which those of the runs descend: when it ends, no run begins, and those in progress
// are told. [cron.Cron.Stop] tells nobody. Defaults to [context.Background].
func WithContext(ctx context.Context) Option {
	return optionFunc(func(c *config) {
		if ctx == nil {
			c.refuse("WithContext: the context is nil")
		}
		c.context = ctx
	})
}

// WithLogger sets where ticks are reported that did not run, and clocks that are off. Nil switches it off. Defaults to
// [slog.Default].
func WithLogger(logger *slog.Logger) Option {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return optionFunc(func(c *config) { c.logger = logger })
}

// WithHooks sets functions that are told what becomes of ticks. Defaults to none.
func WithHooks(hooks Hooks) Option {
	return optionFunc(func(c *config) { c.hooks = hooks })
}

// WithReplica sets how this process is called in [History]. 1 to 128 bytes in one line. Defaults to the host's name and
// the process id.
func WithReplica(name string) Option {
	return optionFunc(func(c *config) {
		c.checkText("WithReplica", name, mostReplica)
		c.replica = name
	})
}

// WithService sets the name of the service that the job belongs to. All replicas and versions of it need the same. Two
// services with jobs of one name would take ticks from each other, so a replica that finds another service's record of
// its job logs a warning, see also Hooks.Mismatched. The name of the service is no part of that of the job. 1 to 100
// bytes in one line. Defaults to the path of the main package, or else to the name of the program.
func WithService(name string) Option {
	return optionFunc(func(c *config) {
		c.checkText("WithService", name, mostService)
		c.service = name
	})
}

// What the note of a record has room for, which core bounds to 256 bytes in all.
const (
	mostReplica = 128
	mostService = 100
)

func (c *config) checkText(option, text string, most int) {
	switch {
	case text == "" || len(text) > most:
		c.refuse("%s: %d bytes, 1 to %d are allowed", option, len(text), most)
	case strings.ContainsAny(text, "\n\x00"):
		c.refuse("%s(%q): line breaks and NUL are not allowed", option, text)
	}
}

// WithWait lets a tick wait for the end of an earlier run of the job that still goes on, on whichever replica. A tick
// that has waited for so long, or until its start deadline, is skipped. Defaults to skipping it at once.
func WithWait(limit time.Duration) Option {
	return optionFunc(func(c *config) {
		c.positive("WithWait", limit)
		c.overlap, c.wait = overlapWait, limit
	})
}

// AllowOverlap lets a tick run while an earlier run of the job still goes on. Of this and [WithWait], the last one
// counts. Defaults to skipping it.
func AllowOverlap() Option {
	return optionFunc(func(c *config) { c.overlap = overlapAllow })
}

// WithStartDeadline sets how late a tick may start: after a stall or an outage of Redis, or because it waits for an
// earlier run. A later one is skipped. Give all replicas the same: a tick is remembered for twice as long. At most 366
// days. Defaults to half of the time to the next tick, at most 5 min, and at least 10 s, or with [WithFailover] a
// minute and twice the TTL.
func WithStartDeadline(limit time.Duration) Option {
	return optionFunc(func(c *config) {
		c.between("WithStartDeadline", limit, leastTime)
		c.deadline = limit
	})
}

// WithMaxSkew sets how far the clock of a replica may be ahead of that of Redis: who comes earlier for a tick is
// refused, and another replica runs it. One that is behind comes late, see [WithStartDeadline]. A clock that is off by
// more than half of it, either way, is reported. At most 366 days. Defaults to 30 s.
func WithMaxSkew(limit time.Duration) Option {
	return optionFunc(func(c *config) {
		c.positive("WithMaxSkew", limit)
		c.maxSkew = limit
	})
}

// WithFailover lets another replica run a tick whose runner died, lost its lease or was shut down before it was done:
// up to so many attempts in all, within the start deadline, which has to be longer than the TTL, and as long as the job
// if it is to be watched to its end. The tick may then start more than once, never twice at the same time by the lease,
// and each time with a greater fencing token. A job that fails, or takes longer than [WithMaxHold], is not run again.
//
// The other replicas watch a run on goroutines of their own, for which [cron.Cron.Stop] does not wait, and a replica
// that begins watches unfinished ticks too. A run that is taken over is started by the scheduler, if that still runs.
// Defaults to 1: a tick whose runner died is over.
func WithFailover(attempts int) Option {
	return optionFunc(func(c *config) {
		if attempts < 1 {
			c.refuse("WithFailover(%d): at least 1 attempt is needed", attempts)
		}
		c.attempts = attempts
	})
}

// WithCatchUp lets a replica that comes up, or that could not reach Redis in time, run the latest tick that all have
// missed, if it is not older than the window. It is claimed like any other. A job that has never run, or not for three
// periods of its schedule, catches up with nothing, and so does one that was paused with the ticks until [Resume]. Give
// all replicas the same window: ticks are remembered for twice as long. At most 366 days. Defaults to none.
func WithCatchUp(window time.Duration) Option {
	return optionFunc(func(c *config) {
		c.between("WithCatchUp", window, leastTime)
		c.catchUp = window
	})
}

// WithHistory sets of how many periods of the schedule [History] knows: 1 to 10,000, and 30 days at most. It may know
// more, because a tick is remembered for longer than it may start. Defaults to 20.
func WithHistory(periods int) Option {
	return optionFunc(func(c *config) {
		if periods < 1 || periods > 10_000 {
			c.refuse("WithHistory(%d): 1 to 10000 are allowed", periods)
		}
		c.history = periods
	})
}

// FailOpen runs a tick, on every replica, that could not be claimed until its start deadline because Redis did not
// answer; even without the lock that keeps it apart from other runs. A Redis that refuses, because it is full or the user
// lacks a right, opens nothing. Nothing is promised for such a run, and it is not in the [History]. Defaults to skipping
// it.
func FailOpen() Option {
	return optionFunc(func(c *config) { c.failOpen = true })
}

// WithTTL sets for how long a run that is not heard of any more is taken for one in progress; it is renewed every third
// of it. Whole milliseconds, at least 10 ms. Defaults to that of the client, 30 s unless told otherwise.
func WithTTL(ttl time.Duration) Option {
	return optionFunc(func(c *config) { c.lock, c.ttl = append(c.lock, core.WithTTL(ttl)), ttl })
}

// WithMaxHold sets how long a run may take: then its context ends, with the cause [ErrMaxHold]. If the function returns
// an error after that, the outcome is [TimedOut], which [WithFailover] does not run again. Until the function returns,
// its lease is renewed, for the time of [WithZombieGrace] at most. 0 is no limit. Defaults to no limit.
func WithMaxHold(limit time.Duration) Option {
	return optionFunc(func(c *config) {
		if err := core.CheckOptions(core.WithMaxHold(limit)); err != nil && c.err == nil {
			c.err = err
		}
		c.maxHold = limit
	})
}

// WithZombieGrace sets for how long the lease of a run is renewed after its [WithMaxHold] while the function goes on.
// After that the lease runs out, and the next tick may start beside the function on another replica; in this process it
// does not. Defaults to 2 min.
func WithZombieGrace(grace time.Duration) Option {
	return optionFunc(func(c *config) {
		c.positive("WithZombieGrace", grace)
		c.grace = grace
	})
}

// WithMinHold keeps the job taken for at least so long after a run has begun: a tick that comes sooner meets an earlier
// run, see [WithWait]. A tick runs once without it. 0 is none. Defaults to none.
func WithMinHold(least time.Duration) Option {
	return optionFunc(func(c *config) {
		if err := core.CheckOptions(core.WithMinHold(least)); err != nil && c.err == nil {
			c.err = err
		}
		c.minHold = least
	})
}

// check finds what is wrong with the arguments of a job.
func (c *config) check(locks *core.Client, name string) error {
	switch {
	case locks == nil:
		return errNoClient
	case c.err != nil:
		return c.err
	case c.overlap == overlapAllow && c.minHold > 0:
		return errors.New("holdfast: cronlock: WithMinHold with AllowOverlap: there is nothing to hold")
	case c.grace > 0 && c.maxHold == 0:
		return errors.New("holdfast: cronlock: WithZombieGrace without WithMaxHold: no run is ever too long")
	}
	return checkName(name)
}

var errNoClient = errors.New("holdfast: cronlock: the client is nil: pass that of core.New")
