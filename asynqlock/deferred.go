package asynqlock

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
)

// DeferredError says that asynq has to redeliver a task for a reason outside of the task: another one with its key
// runs, its lease was lost, or Redis cannot be asked. asynq calls that a failure and uses up a retry, unless you use
// [Configure]. The wrapped error is the reason: [core.ErrInProgress] and [core.ErrNotAcquired], [core.ErrLeaseLost],
// [core.ErrUnavailable].
type DeferredError struct {
	// KeyHash is the hash of the task's key.
	KeyHash string
	// RetryIn is the delay before the redelivery.
	RetryIn time.Duration
	// Busy is how long this server has been deferring the task because others with its key ran; Times is how often.
	Busy  time.Duration
	Times int
	// Ahead is the number of tasks before it in the line, including the running one, see [WithLine].
	Ahead int
	// Err is the reason.
	Err error
}

// Error returns the reason and the delay.
func (e *DeferredError) Error() string {
	return fmt.Sprintf("%s for %v: %v", deferredText, e.RetryIn.Round(time.Millisecond), e.Err)
}

// deferredText tells a deferred task from one that has failed, in asynq's record of its last error.
const deferredText = "holdfast: asynqlock: task deferred"

// Unwrap returns the reason.
func (e *DeferredError) Unwrap() error { return e.Err }

// busy reports whether another task of the key is the reason, as it may be for a while.
func (e *DeferredError) busy() bool { return isBusy(e.Err) && !errors.Is(e.Err, ErrBusyTooLong) }

// isBusy reports whether somebody else has the key, as Redis itself said.
func isBusy(err error) bool {
	return guards.Busy(err) && !errors.Is(err, core.ErrLeaseLost)
}

// ErrBusyTooLong says that a task has been deferred for longer than [WithMaxBusy] because others with its key ran. The
// task is deferred further without using up a retry: it has never run.
var ErrBusyTooLong = errors.New("holdfast: asynqlock: busy for too long")

// shortestDelay keeps a task from coming again while asynq still works at its last run: the queue counts in whole
// seconds, and its heartbeat takes two quick runs of a task for one.
const shortestDelay = time.Second

// jittered returns a time around d, so that those who were deferred together do not come together again.
func jittered(d time.Duration) time.Duration {
	return max(d/2+rand.N(d), shortestDelay)
}

// deferral makes the error of a task that has to come again.
func (v *visit) deferral(reason error) *DeferredError {
	e := &DeferredError{KeyHash: v.ask.KeyHash, RetryIn: jittered(v.retryIn), Ahead: v.spot.ahead, Err: reason}
	if v.line != nil {
		e.RetryIn = v.line.delay(v, e.RetryIn)
	}
	if isBusy(reason) && v.task.ID != "" {
		v.count(e)
	}
	return e
}

// count counts a deferral of a task because of another one of its key.
func (v *visit) count(e *DeferredError) {
	this := v.busy.bounce(v.task, time.Now(), v.maxBusy, e.RetryIn)
	e.Busy, e.Times = this.busy, this.times
	v.warnBurned(this.burned)
	if v.task.last() {
		v.Event(v.ctx, slog.LevelWarn, "archived", "holdfast: asynqlock: a task on its last attempt may not wait any longer, and "+
			"asynq archives it: give tasks a retry", v.ask.Work, nil, v.attrs()...)
	}
	if this.tooLong {
		e.Err = fmt.Errorf("%w: for %v: %w", ErrBusyTooLong, e.Busy.Round(time.Second), e.Err)
		v.Line(v.ctx, slog.LevelWarn, "holdfast: asynqlock: a task is being deferred for long because others with its key run", v.ask.Work,
			v.attrs(slog.Duration("since", e.Busy), slog.Int("times", e.Times), slog.Int("ahead", e.Ahead))...)
	}
}

// settled ends the count of deferrals of a task that runs, or never will.
func (v *visit) settled() { v.warnBurned(v.busy.ran(v.task, time.Now(), v.retryIn)) }

// warnBurned warns that a deferral has cost a task a retry.
func (v *visit) warnBurned(burned bool) {
	if burned {
		v.Line(v.ctx, slog.LevelWarn, "holdfast: asynqlock: a deferred task has used up a retry: pass asynq's Config to Configure, "+
			"unless a middleware in front of the guard has failed", v.ask.Work, v.attrs()...)
	}
}

// mostBusy bounds how many tasks are counted at a time. One that has no room begins anew each time.
const mostBusy = 100_000

// busyTasks counts how often tasks were deferred because of others, since asynq does not.
type busyTasks struct {
	mu     sync.Mutex
	tasks  map[busyTask]*bounces
	swept  time.Time
	warned bool
}

// busyTask identifies a task. Without ID there is nothing to count.
type busyTask struct{ queue, id string }

type bounces struct {
	first   time.Time
	last    time.Time
	times   int
	retried int
	told    int // how many times the limit had passed when that was told
}

// bounce is one more deferral of a task.
type bounce struct {
	busy    time.Duration // for which the task was deferred since it ran the last time
	times   int           // how often
	burned  bool          // true once: a retry was used up just after, since asynq takes deferred tasks for failed ones
	tooLong bool          // the limit has passed once more
}

// bounce counts one more.
func (b *busyTasks) bounce(t taskInfo, now time.Time, limit, retryIn time.Duration) (this bounce) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sweep(now, max(2*limit, 4*retryIn, time.Hour))
	key := busyTask{t.Queue, t.ID}
	n := b.tasks[key]
	if n == nil {
		n = &bounces{first: now, retried: t.Retried}
		if len(b.tasks) < mostBusy {
			b.tasks[key] = n
		}
	}
	if t.Retried > n.retried { // it has failed meanwhile, or asynq thinks so
		this.burned = b.burned(n, t, now, retryIn)
		*n = bounces{first: now}
	}
	n.last, n.retried = now, t.Retried
	n.times++
	this.busy, this.times = now.Sub(n.first), n.times
	if told := int(this.busy / limit); told > n.told {
		n.told, this.tooLong = told, true
	}
	return this
}

// ran removes a task that runs, or never will. It returns true if a retry was used up since the last deferral: with a
// line most tasks are deferred only once.
func (b *busyTasks) ran(t taskInfo, now time.Time, retryIn time.Duration) (burned bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := busyTask{t.Queue, t.ID}
	if n := b.tasks[key]; n != nil {
		burned = b.burned(n, t, now, retryIn)
	}
	delete(b.tasks, key)
	return burned
}

// burned returns true, once, for a task that has one retry less than at its deferral a moment ago. The caller must hold
// b.mu.
func (b *busyTasks) burned(n *bounces, t taskInfo, now time.Time, retryIn time.Duration) bool {
	burned := !b.warned && t.Retried > n.retried && now.Sub(n.last) < 2*retryIn+time.Minute
	b.warned = b.warned || burned
	return burned
}

// sweep forgets tasks that have not come again, because another server has them; b.mu is held.
func (b *busyTasks) sweep(now time.Time, forget time.Duration) {
	if b.tasks == nil {
		b.tasks = make(map[busyTask]*bounces)
	}
	if now.Sub(b.swept) < forget/2 {
		return
	}
	b.swept = now
	for key, n := range b.tasks {
		if now.Sub(n.last) > forget {
			delete(b.tasks, key)
		}
	}
}
