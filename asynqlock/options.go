package asynqlock

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// Option configures a guard: the options of this package, and those of core that fit, such as [core.WithWait] and
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

type option struct {
	seal.Mark
	apply func(*config)
}

func newOption(name string, apply func(*config)) Option {
	return option{seal.Mark{Name: "asynqlock." + name}, apply}
}

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

type config struct {
	guards.Config
	conflict     conflict
	retryIn      time.Duration
	maxBusy      time.Duration
	commitMargin time.Duration
	payload      payloadPolicy
	runs         *Runs
	line         *line // nil without
	err          error
}

const (
	defaultTTL       = 30 * time.Second
	defaultMaxResult = 64 << 10
)

func newConfig(place guards.Place, opts []Option) config {
	c := config{
		retryIn: 10 * time.Second, maxBusy: time.Hour, commitMargin: 2 * time.Second, runs: new(Runs),
	}
	sorted, err := place.Sort(opts, func(o Option) {
		if own, ok := o.(option); ok {
			own.apply(&c)
		}
	})
	c.Config, c.err = sorted, cmp.Or(c.err, err)
	c.AskTimeout = guards.AskTimeout // nobody waits for the answer, so it need not be short
	// First, so that those of the user count. The client's TTL may be too long.
	c.Lock = slices.Concat([]core.LockOption{core.WithTTL(defaultTTL)}, c.Lock)
	c.Once = slices.Concat([]core.OnceOption{core.WithTTL(defaultTTL), core.WithMaxValue(defaultMaxResult)}, c.Once)
	if c.TTL >= redrive {
		c.refuse("core.WithTTL(%v): less than %v is allowed, when asynq lets a lost task run again", c.TTL, redrive)
	}
	return c
}

func (c *config) refuse(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("holdfast: asynqlock: "+format, args...)
	}
}

// duration makes an option of a duration.
func duration(name string, d time.Duration, set func(*config)) Option {
	return newOption(name, func(c *config) {
		c.err = cmp.Or(c.err, guards.CheckDuration(name, d))
		set(c)
	})
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
	return newOption("WithLine", func(c *config) {
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
// [ErrBusyTooLong]: to the log, to the hooks and to the ErrorHandler. Each server counts for itself. The task is
// deferred further without using up a retry. Defaults to 1 h.
func WithMaxBusy(limit time.Duration) Option {
	return duration("WithMaxBusy", limit, func(c *config) { c.maxBusy = limit })
}

// WithZombieGrace sets how long a lease is renewed after the context of its handler has ended (timeout, cancellation, shutdown)
// while the handler continues. asynq does not wait for the handler, and gives the task to another worker. After the
// grace the lease expires. Defaults to 2 min.
func WithZombieGrace(grace time.Duration) Option { return guards.WithZombieGrace(grace) }

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
func FailOpen() Option { return guards.FailOpen() }

// OptionalKey lets tasks without a key run unguarded. Defaults to archiving them.
func OptionalKey() Option { return guards.OptionalKey() }

// WithKeySecret makes the hashes of keys with a secret (HMAC), so that a reader of Redis cannot guess whose they are.
// All servers need the same secret, of 16 bytes at least. Defaults to none.
func WithKeySecret(secret []byte) Option { return guards.WithKeySecret(secret) }

// WithRuns sets the list of this guard's runs, for [Runs.Drain] at shutdown. Several guards may share one. Defaults to
// one of its own.
func WithRuns(runs *Runs) Option {
	return newOption("WithRuns", func(c *config) {
		if runs == nil {
			c.refuse("WithRuns: it is nil")
		}
		c.runs = runs
	})
}

// The options below are for [Once]; [Exclusive] keeps no records and refuses them.

// IgnorePayload lets tasks of one key have different payloads: the first one that runs counts. See [ComparePayload].
//
// Defaults to a rule by the key. If the key identifies the task, the rest of the payload may differ, such as a time of
// sending or a trace ID. Such keys are those of [ByPayload] with fields, [PerPeriod] and [ByTick], even as parts of
// [Keys]. For every other key ([ByTaskID], [ByHeader], [ByType], functions of your own) another payload is a mistake
// of the producer: the task is archived with [core.ErrFingerprintMismatch]. A function of your own may call ByPayload
// with its context; then the rule of ByPayload applies.
func IgnorePayload() Option { return payloadOption("IgnorePayload", payloadIgnored) }

// ComparePayload archives a task if its payload differs from that of the first one that ran with its key, byte for
// byte, whatever the key is made of. The error is [core.ErrFingerprintMismatch]. Defaults to the rule of
// [IgnorePayload].
func ComparePayload() Option { return payloadOption("ComparePayload", payloadCompared) }

// WithFinishTimeout sets how long the end of a run waits for Redis to confirm the record. After that the task is
// acknowledged all the same, and the record is retried in the background. At least 1 ms. Defaults to 5 s.
func WithFinishTimeout(limit time.Duration) Option { return guards.WithFinishTimeout(limit) }

// SkipDuplicates acknowledges a task without running it while another one with its key runs. Use it if both ask for
// the same: the task does not run later, even if the other one fails. A second delivery of the same task is deferred
// all the same, because asynq would lose the task together with its worker. Defaults to deferring it.
func SkipDuplicates() Option {
	return onConflict("SkipDuplicates", conflictSkip)
}

// RejectDuplicates archives a task while another one with its key runs. A second delivery of the same task is
// deferred. Defaults to deferring it.
func RejectDuplicates() Option {
	return onConflict("RejectDuplicates", conflictReject)
}

func onConflict(option string, what conflict) Option {
	return newOption(option, func(c *config) {
		if c.conflict != conflictRetry && c.conflict != what {
			c.refuse("%s: SkipDuplicates and RejectDuplicates contradict each other", option)
		}
		c.conflict = what
	})
}

// guardOptions are those of both guards.
var guardOptions = []string{
	"core.WithTTL", "core.WithWait", "core.WithMaxHold", "core.WithReplicaAck",
	"FailOpen", "OptionalKey", "WithKeySecret", "WithZombieGrace",
	"asynqlock.WithRetryIn", "asynqlock.WithMaxBusy", "asynqlock.WithCommitMargin", "asynqlock.WithRuns",
}

var exclusivePlace = guards.Place{
	Name:  "asynqlock.Exclusive",
	Takes: slices.Concat(guardOptions, []string{"core.WithMinHold", "core.WithPermits", "asynqlock.WithLine"}),
	Refuses: map[string]string{
		"core.WithFixedTTL": "the lease of a task is renewed; core.WithMaxHold limits it",
		"core.WithOwner":    "tasks with one owner do not exclude each other",
	},
	Otherwise: "it keeps no records; asynqlock.Once does",
}

// oncePlace takes the options of [Once].
var oncePlace = guards.Place{
	Name: "asynqlock.Once",
	Takes: slices.Concat(guardOptions, []string{
		"core.WithRetention", "core.WithFailurePolicy", "core.WithMaxValue", "core.WithProof", "WithFinishTimeout",
		"asynqlock.IgnorePayload", "asynqlock.ComparePayload", "asynqlock.SkipDuplicates", "asynqlock.RejectDuplicates",
	}),
	Refuses: map[string]string{
		"core.WithFixedTTL":    "the lease of a task is renewed; core.WithMaxHold limits it",
		"core.WithOwner":       "every run has an owner of its own",
		"core.WithMinHold":     "a record has its core.WithRetention",
		"core.WithPermits":     "only a semaphore has permits",
		"core.WithFingerprint": "each task has its own; asynqlock.ComparePayload compares them",
		"core.WithNote":        "it notes the task",
		"core.WithLabel":       "it labels records with the type of the task",
		"asynqlock.WithLine":   "tasks with one key of Once are duplicates",
	},
}
