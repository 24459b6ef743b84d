package asynqlock

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/outage"
)

// Option configures a guard. An invalid value makes the constructor panic, or return an error with New in its name.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (o optionFunc) apply(c *config) { o(c) }

// redrive is the least time after which asynq lets a task whose worker is gone run again: 30 s until its own lease is
// over, and 30 s more.
const redrive = time.Minute

// conflict says what happens to a task while another one with its key runs.
type conflict int

const (
	conflictRetry conflict = iota
	conflictSkip
	conflictReject
)

// config is what options make. Pointers and records tell what was set, for guards that do not take it.
type config struct {
	ttl          time.Duration
	lock         []core.LockOption
	conflict     conflict
	wait         time.Duration
	retryIn      time.Duration
	maxBusy      time.Duration
	zombieGrace  time.Duration
	commitMargin time.Duration
	failOpen     bool
	optionalKey  bool
	keySecret    []byte
	hooks        Hooks
	logger       *slog.Logger
	runs         *Runs
	records      records
	line         *line // nil without
	err          error
}

// records is what only Once has use for.
type records struct {
	set           []string // options that were given
	retention     time.Duration
	policy        core.FailurePolicy
	payload       payloadPolicy
	maxResult     int
	finishTimeout time.Duration
}

func newConfig(opts []Option) config {
	c := config{
		ttl: 30 * time.Second, retryIn: 10 * time.Second, maxBusy: time.Hour, zombieGrace: 2 * time.Minute,
		commitMargin: 2 * time.Second, logger: slog.Default(), runs: new(Runs),
		records: records{retention: 24 * time.Hour, maxResult: 64 << 10, finishTimeout: 5 * time.Second},
	}
	for _, opt := range opts {
		if opt != nil {
			opt.apply(&c)
		}
	}
	if c.err == nil {
		c.err = core.CheckOptions(c.lockOptions()...)
	}
	return c
}

// lockOptions are those of a lock or of the lease of a run. The last one of a kind counts: no other TTL gets past the
// check of [WithTTL].
func (c *config) lockOptions() []core.LockOption {
	return append(slices.Clone(c.lock), core.WithTTL(c.ttl))
}

// checkExclusive refuses what makes no sense without records, and two rules for the same wait.
func (c *config) checkExclusive() error {
	switch {
	case c.err != nil:
		return c.err
	case len(c.records.set) > 0:
		return fmt.Errorf("holdfast: asynqlock: %s is for Once: Exclusive keeps no records", c.records.set[0])
	case c.line != nil && c.wait > 0:
		return errors.New("holdfast: asynqlock: WithWait with WithLine: the line decides which tasks wait in workers")
	}
	return nil
}

func (c *config) checkOnce() error {
	switch {
	case c.err != nil:
		return c.err
	case c.line != nil:
		return errors.New("holdfast: asynqlock: WithLine is for Exclusive: tasks with one key of Once are duplicates")
	case c.failOpen && c.records.policy == core.HoldFailures:
		return errors.New(
			"holdfast: asynqlock: FailOpen with AtMostOnce: a task that must not run twice cannot run without a record")
	}
	return core.CheckOnceOptions(c.onceOptions()...)
}

func (c *config) onceOptions() []core.OnceOption {
	r := &c.records
	opts := []core.OnceOption{
		core.WithRetention(r.retention), core.WithFailurePolicy(r.policy), core.WithMaxValue(r.maxResult),
	}
	for _, opt := range c.lockOptions() {
		opts = append(opts, opt)
	}
	return opts
}

func (c *config) refuse(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("holdfast: asynqlock: "+format, args...)
	}
}

// positive refuses a duration that makes no sense. A number without a unit is one of nanoseconds.
func (c *config) positive(option string, d time.Duration) {
	const most = 365 * 24 * time.Hour
	switch {
	case d <= 0 || d > most:
		c.refuse("%s(%v): more than 0 and at most %v is allowed", option, d, most)
	case d < outage.ShortestWait:
		c.refuse("%s(%v): at least %v is needed%s", option, d, outage.ShortestWait, outage.UnitHint(d))
	}
}

// duration makes an option of a duration.
func duration(option string, d time.Duration, set func(*config)) Option {
	return optionFunc(func(c *config) {
		c.positive(option, d)
		set(c)
	})
}

// record makes an option that only Once takes.
func record(option string, set func(*config)) Option {
	return optionFunc(func(c *config) {
		c.records.set = append(c.records.set, option)
		set(c)
	})
}

// WithTTL sets how long Redis keeps the lease of a task whose process has crashed. The guard renews a lease every
// third of the TTL. Less than a minute, after which asynq redelivers such a task. Defaults to 30 s.
func WithTTL(ttl time.Duration) Option {
	return optionFunc(func(c *config) {
		if ttl >= redrive {
			c.refuse("WithTTL(%v): less than %v is allowed, when asynq lets a lost task run again", ttl, redrive)
		}
		c.ttl = ttl
	})
}

// WithLock adds options of the lock, or of the lease of a run: for instance [core.WithReplicaAck]. After
// [core.WithMaxHold] a handler has lost its lease, and its task is redelivered. With [core.WithOwner] all tasks would
// be one holder, and nothing would be excluded. If an option is given several times, the last one counts. The TTL is
// that of [WithTTL], the wait that of [WithWait]. Defaults to none.
func WithLock(opts ...core.LockOption) Option {
	return optionFunc(func(c *config) { c.lock = slices.Concat(c.lock, opts) })
}

// WithWait lets a task wait for another one with its key, in its worker, before it is deferred. If you gave the
// server's config to [Configure], half of the workers may wait at most. A task waits for half of its own time at most,
// so that its handler has the other half. It does not wait for the end of an outage of Redis. At least 1 ms. Defaults to
// no wait: a task is deferred at once. To run many tasks of one key without delay, use [WithLine], which decides which tasks wait, and
// refuses WithWait.
func WithWait(limit time.Duration) Option {
	return duration("WithWait", limit, func(c *config) { c.wait = limit })
}

// WithLine makes [Exclusive] run the tasks of a key one right after the other, in order of arrival at the guard: with a
// semaphore of n permits, n at a time. The order is
// not that of enqueuing: tasks that workers take at one instant arrive in any order. Tasks that find another one
// running queue in a line, and the end of a run makes the next ones due. Without it asynq redelivers a deferred task
// after its delay, when asynq looks for due tasks, every five seconds by default. One of the tasks that arrive together
// then gets the lock.
//
// The client has to connect to the Redis and the database of asynq's queues: make it with MakeRedisClient of asynq's
// options. WithLine does not close it. The line takes some 100 bytes there for each task in it. A few of the next tasks
// wait in workers, half of the workers at most: give the server's config to [Configure], which says how many there are.
// A task costs two scripts more, and some commands of asynq's if other tasks are in the line. One process keeps the
// order of the line; on several servers, neighbours in the line may change places.
//
// Give tasks a retry: a task on its last attempt cannot be deferred, since asynq would archive it. It waits in a
// worker, may therefore overtake others, and is archived if no worker is free for it. If the process crashes that
// would have made the next task due, that task arrives after its own delay. Defaults to no line.
func WithLine(rdb redis.UniversalClient) Option {
	return optionFunc(func(c *config) {
		if v := reflect.ValueOf(rdb); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			c.refuse("WithLine: the Redis client is nil: pass one of the Redis that asynq's queues are in")
			return
		}
		c.line = newLine(rdb)
	})
}

// WithRetryIn sets the delay before a deferred task is redelivered, plus or minus half of it. asynq looks for due
// tasks every few seconds only. Less than a second counts as one. Defaults to 10 s.
func WithRetryIn(delay time.Duration) Option {
	return duration("WithRetryIn", delay, func(c *config) { c.retryIn = delay })
}

// WithMaxBusy sets the time after which a task that is deferred because others with its key run is reported, with
// [ErrBusyTooLong]: to the log, to [Hooks] and to the ErrorHandler. Each server counts for itself. The task is
// deferred further and burns no retry. Defaults to 1 h.
func WithMaxBusy(limit time.Duration) Option {
	return duration("WithMaxBusy", limit, func(c *config) { c.maxBusy = limit })
}

// WithZombieGrace sets how long a lease is renewed after asynq has given up its task (timeout, cancellation, shutdown)
// while the handler continues. asynq does not wait for the handler, and gives the task to another worker. After the
// grace the lease expires. Defaults to 2 min.
func WithZombieGrace(grace time.Duration) Option {
	return duration("WithZombieGrace", grace, func(c *config) { c.zombieGrace = grace })
}

// WithCommitMargin sets how long before the task's own deadline the context of the handler ends. So the end of a run
// is recorded before asynq treats it as failed. It is at most a tenth of the task's time. Defaults to 2 s.
func WithCommitMargin(margin time.Duration) Option {
	return duration("WithCommitMargin", margin, func(c *config) { c.commitMargin = margin })
}

// FailOpen lets tasks run unguarded while Redis cannot be asked, see [Degraded]. It does not apply while Redis
// refuses, because it is full or the user lacks a right. Nor does it apply to a key of which this guard knows another
// task: one that runs in this process, or one that had a lease when Redis last answered about the key, until that
// lease ends. Then the task is deferred. Behind [Once] it is acknowledged if one has taken effect in this process
// within ten minutes, or was found completed here. When Redis is back, what ran unguarded is recorded, as [core.Complete],
// [core.Release] and [core.Hold] say, and does not run again. A guard that remembers 10,000 keys defers further ones. If locks and
// queues are in one Redis, asynq has no tasks in an outage either. Defaults to deferring tasks.
func FailOpen() Option {
	return optionFunc(func(c *config) { c.failOpen = true })
}

// OptionalKey lets tasks without a key run unguarded. Defaults to archiving them.
func OptionalKey() Option {
	return optionFunc(func(c *config) { c.optionalKey = true })
}

// WithKeySecret makes the hashes of keys with a secret (HMAC), so that a reader of Redis cannot guess whose they are.
// All servers need the same secret, of 16 bytes at least. Defaults to none.
func WithKeySecret(secret []byte) Option {
	const shortest = 16
	secret = slices.Clone(secret)
	return optionFunc(func(c *config) {
		if len(secret) < shortest {
			c.refuse("WithKeySecret: %d bytes, at least %d are needed", len(secret), shortest)
		}
		c.keySecret = secret
	})
}

// WithHooks sets functions that are called with what the guard does. Defaults to none.
func WithHooks(hooks Hooks) Option {
	return optionFunc(func(c *config) { c.hooks = hooks })
}

// WithLogger sets the logger for what Redis did not do, for handlers that do not stop, and for first deliveries that
// are acknowledged without running. The last is a warning if the task has the ID of the task that ran. Nil switches it
// off. Defaults to [slog.Default].
func WithLogger(logger *slog.Logger) Option {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return optionFunc(func(c *config) { c.logger = logger })
}

// WithRuns sets the list of this guard's runs, for [Runs.Drain] at shutdown. Several guards may share one. Defaults to
// one of its own.
func WithRuns(runs *Runs) Option {
	return optionFunc(func(c *config) {
		if runs == nil {
			c.refuse("WithRuns: it is nil")
		}
		c.runs = runs
	})
}
