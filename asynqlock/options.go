package asynqlock

import (
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
)

// Option configures a guard: the options of this package, and core's that fit, such as [core.WithWait] and
// [core.WithRetention]. With an invalid value, or an option that makes no sense in a guard, [Once] and [Exclusive] panic, and
// [NewOnce] and [NewExclusive] return an error.
//
// Options of core mean what they mean there, with these limits and defaults:
//   - [core.WithTTL] is less than a minute, after which asynq redelivers a task whose process has crashed. Defaults to 30 s,
//     whatever the client has.
//   - [core.WithWait] lets a task wait for another one with its key, in its worker, before it is deferred. If you gave the
//     server's config to [Configure], half of the workers may wait at most. A task waits for half of its own time at most, so
//     that its handler has the other half. It does not wait for the end of an outage of Redis. To run many tasks of one key
//     without delay, use [WithLine], which decides which tasks wait, and refuses it. Defaults to 0: a task is deferred at once.
//   - [core.WithMaxHold] makes a handler lose its lease, and its task is redelivered.
//   - [core.WithRetention] has to be longer than the time in which a task can come again: the retries of asynq's
//     defaults take 20 days, and a task in the archive can be run again for 90. Defaults to 24 h.
//   - [core.WithFailurePolicy] with [core.HoldFailures] archives the task of a run that failed or crashed with
//     [core.ErrOutcomeUnknown] until an operator has found out, see [Guard.Resolve] and [Guard.Forget]. If a guard right
//     behind this one refuses the task, the run has done nothing. A handler that has done nothing calls [core.Release], and
//     its task runs again. One that returns [asynq.RevokeTask] leaves no record.
//   - [core.WithMaxValue] is for results, see [SetResult]. A larger one is neither recorded nor replayed. Defaults to 64 KiB.
//
// The Option of all guards is one type, so guards can share a slice of options that all of them take.
type Option = guards.Option

// config is what the options of this package amount to.
type config struct {
	compare *bool // whether two tasks with one key must have the same payload; nil if the key says that
	retryIn time.Duration
	runs    *Runs
	line    *line // nil without
}

const (
	defaultTTL       = 30 * time.Second
	defaultMaxResult = 64 << 10
	// redrive is the least time after which asynq lets a task whose worker is gone run again: 30 s until its own lease is
	// over, and 30 s more.
	redrive = time.Minute
)

// newGuard returns what both guards have in common, and the config of its engine.
func newGuard(place guards.Place, key KeyFunc, opts []Option) (*guard, error) {
	g := &guard{
		config: config{retryIn: 10 * time.Second, runs: new(Runs)},
		key:    key,
	}
	c, err := guards.Sort(place, opts, &g.config)
	switch {
	case err != nil:
		return nil, err
	case key == nil:
		return nil, invalid("the key function is nil: pass ByPayload(\"order\") for instance")
	case c.TTL >= redrive:
		return nil, invalid("core.WithTTL(%v): less than %v is allowed, when asynq lets a lost task run again", c.TTL, redrive)
	case g.line != nil && c.Wait > 0:
		return nil, invalid("core.WithWait with WithLine: the line decides which tasks wait in workers")
	}
	c.AskTimeout = guards.AskTimeout // nobody waits for the answer, so it need not be short
	// First, so that the user's options win. The client's TTL may be too long.
	c.Lock = slices.Concat([]core.LockOption{core.WithTTL(defaultTTL)}, c.Lock)
	c.Once = slices.Concat([]core.OnceOption{core.WithTTL(defaultTTL), core.WithMaxValue(defaultMaxResult)}, c.Once)
	g.Config = c
	return g, nil
}

// invalid returns a [core.ErrInvalidOption].
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: asynqlock: "+format, append([]any{core.ErrInvalidOption}, args...)...)
}

func own(name string, set func(*config) error) Option { return guards.Own("asynqlock."+name, set) }

// WithLine makes [Exclusive] run the tasks of a key one right after the other, or with a semaphore of n permits n at a time, about
// in the order in which they arrive at the guard. Tasks that find another one running queue in a line, and the end of a run makes
// the next ones due. Without it, one of the deferred tasks that asynq redelivers together gets the lock, every five seconds by
// default.
//
// The client has to connect to the Redis and the database of asynq's queues: make it with MakeRedisClient of asynq's
// options. WithLine does not close it. The line takes about 100 bytes there for each task in it. A few of the next tasks
// wait in workers, half of the workers at most: give the server's config to [Configure], which says how many there are.
// A task costs two scripts more, and some commands of asynq's if other tasks are in the line.
//
// Give tasks a retry: a task on its last attempt cannot be deferred, since asynq would archive it. It waits in a
// worker, may therefore overtake others, and is archived if no worker is free for it. A task that nothing makes due, because a
// process crashed for instance, comes after its own delay. Defaults to none.
func WithLine(rdb redis.UniversalClient) Option {
	return own("WithLine", func(c *config) error {
		if guards.IsNil(rdb) {
			return invalid("WithLine: the Redis client is nil: pass one of the Redis that asynq's queues are in")
		}
		c.line = newLine(rdb)
		return nil
	})
}

// WithRetryIn sets the delay before a deferred task is redelivered, plus or minus half of it. asynq looks for due
// tasks every few seconds only. Less than a second counts as one. Defaults to 10 s.
func WithRetryIn(delay time.Duration) Option {
	return guards.OwnDuration("asynqlock.WithRetryIn", delay, func(c *config) *time.Duration { return &c.retryIn })
}

// WithZombieGrace sets how long a lease is renewed after the context of its handler has ended (timeout, cancellation, shutdown)
// while the handler continues. asynq does not wait for the handler, and gives the task to another worker. After the
// grace the lease expires. Defaults to 2 min.
func WithZombieGrace(grace time.Duration) Option { return guards.WithZombieGrace(grace) }

// FailOpen lets tasks run unguarded while Redis cannot be asked, see [Degraded]. It does not apply while Redis
// refuses, because it is full or the user lacks a right. Nor does it apply to a key of which this guard knows another
// task: one that runs in this process, or one that had a lease when Redis last answered about the key, until that
// lease ends. Then the task is deferred. Behind [Once] it is acknowledged if one has taken effect in this process
// within ten minutes, or was found completed here. When Redis is back, what ran unguarded is recorded, as [core.Complete],
// [core.Release] and [core.Hold] say, and does not run again. A guard that remembers 10,000 keys
// that ran without Redis or are held, or 500,000 that took effect within ten minutes, defers further ones. If locks and
// queues are in one Redis, asynq has no tasks in an outage either. Defaults to off: tasks are deferred.
func FailOpen() Option { return guards.FailOpen() }

// OptionalKey lets tasks without a key run unguarded, but none whose key function has failed. Defaults to off: they are archived.
func OptionalKey() Option { return guards.OptionalKey() }

// WithKeySecret makes the hashes of keys with a secret (HMAC), so that a reader of Redis cannot guess whose they are.
// All servers need the same secret, of 16 bytes at least. Defaults to none.
func WithKeySecret(secret []byte) Option { return guards.WithKeySecret(secret) }

// WithRuns sets the list of this guard's runs, for [Runs.Drain] at shutdown. Several guards may share one. Defaults to
// one of its own.
func WithRuns(runs *Runs) Option {
	return own("WithRuns", func(c *config) error {
		if runs == nil {
			return invalid("WithRuns: it is nil")
		}
		c.runs = runs
		return nil
	})
}

// ComparePayload says whether a task is archived, with [core.ErrFingerprintMismatch], if its payload differs from the first one's
// that ran with its key, byte for byte. It is for [Once].
//
// Defaults to what the key implies. If the key identifies the task, the rest of the payload may differ, such as a time of
// sending or a trace ID. Such keys are made by [ByPayload] with fields, [PerPeriod] and [ByTick], even as parts of
// [Keys]. For every other key ([ByTaskID], [ByHeader], [ByType], functions of your own) another payload is a mistake
// of the producer. A function of your own may call ByPayload with its context; then the rule of ByPayload applies.
func ComparePayload(compare bool) Option {
	return own("ComparePayload", func(c *config) error {
		c.compare = &compare
		return nil
	})
}

// WithFinishTimeout sets how long the end of a run waits for Redis to confirm the record. After that the task is
// acknowledged all the same, and the record is retried in the background. At least 1 ms. Defaults to 5 s.
func WithFinishTimeout(limit time.Duration) Option { return guards.WithFinishTimeout(limit) }

// The options of this package: of both guards, and of each.
var (
	bothTake = []string{"WithZombieGrace", "asynqlock.WithRetryIn", "asynqlock.WithRuns"}

	exclusivePlace = guards.Place{
		Name:      "asynqlock.Exclusive",
		Takes:     slices.Concat(guards.ExclusiveTakes, bothTake, []string{"asynqlock.WithLine"}),
		Refuses:   map[string]string{"core.WithOwner": "tasks with one owner do not exclude each other"},
		Otherwise: "it keeps no records; asynqlock.Once does",
	}
	oncePlace = guards.Place{
		Name:  "asynqlock.Once",
		Takes: slices.Concat(guards.OnceTakes, bothTake, []string{"asynqlock.ComparePayload"}),
		Refuses: map[string]string{
			"core.WithFingerprint": "each task has its own; asynqlock.ComparePayload compares them",
			"asynqlock.WithLine":   "tasks with one key of Once are duplicates",
		},
	}
)
