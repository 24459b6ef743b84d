package asynqlock

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
)

var (
	//go:embed enter.lua
	enterSource string
	//go:embed leave.lua
	leaveSource string

	enterScript = redis.NewScript(enterSource)
	leaveScript = redis.NewScript(leaveSource)
)

const (
	// lineTime is how long a line is kept that no task has come to: longer than a deferred task stays away.
	lineTime = 24 * time.Hour
	// lookTime is how long an idle asynq server takes, at most, to see a task that is due, with its defaults.
	lookTime = 1500 * time.Millisecond
	// placeTime is how long a task waits in its worker for its turn, before it goes back into the line.
	placeTime = 5 * time.Second
	// calledFor is how long a task that was called is not called once more.
	calledFor = 2 * time.Second
	// mostListed bounds how many places of a line one script returns, and mostCalled how many one pass looks at.
	mostListed, mostCalled = 1000, 100
	// longestDelay is when a task far behind in a line comes again at the latest, should nothing call it.
	longestDelay = 2 * time.Minute
)

// line is where the tasks of a key stand, those that run and those that wait for them, in order of arrival on all
// servers. It is in Redis, next to asynq's queues. What ends a run makes the next tasks of the key due, so that none has
// to wait until asynq looks for deferred tasks. A bounded number of them waits in workers, because an idle server takes
// a second to see that a task is due.
//
// As many tasks of a key run at a time as its lock has permits. So the first so many of the line are those that should
// be running, and only those behind them wait.
//
// The line decides in which order tasks are called. It excludes nothing: that is the lock's part. A line that is lost
// costs the order and some seconds.
type line struct {
	rdb       redis.UniversalClient
	inspector *asynq.Inspector
	found     atomic.Bool  // asynq's tasks are in this Redis
	here      sync.Map     // tasks that run or wait in this process
	called    sync.Map     // tasks that were made due a moment ago
	mean      atomic.Int64 // how long tasks run, on the average of the last ones
}

func newLine(rdb redis.UniversalClient) *line {
	l := &line{rdb: rdb, inspector: asynq.NewInspectorFromRedisClient(rdb)}
	l.mean.Store(int64(time.Second))
	return l
}

func lineKey(hash string) string { return "asynqlock:line:{" + hash + "}" }

// member names the task in its line.
func (v *visit) member() string { return v.task.Queue + "\x00" + v.task.ID }

// errForeign says that the client of a line leads to another Redis than the one that asynq has the task from.
var errForeign = errors.New("holdfast: asynqlock: WithLine: the running task is not in the Redis of this client: pass " +
	"one of the Redis and database that asynq's queues are in")

// enter puts a task into the line, or finds it there. It returns how many tasks are before it.
func (l *line) enter(ctx context.Context, v *visit) (ahead int, isNew bool, err error) {
	if err := l.find(v); err != nil {
		return 0, false, err
	}
	reply, err := enterScript.Run(ctx, l.rdb, []string{lineKey(v.ask.KeyHash)}, v.member(), lineTime.Milliseconds()).Int64Slice()
	switch {
	case err != nil:
		return 0, false, err
	case len(reply) != 2 || reply[0] < 0:
		return 0, false, fmt.Errorf("holdfast: asynqlock: unexpected reply of %d numbers from Redis to enter.lua", len(reply))
	}
	return int(min(reply[0], math.MaxInt32)), reply[1] == 1, nil
}

// find looks once whether asynq's tasks are in this Redis. A line elsewhere would never call any.
func (l *line) find(v *visit) error {
	if _, made := v.ctx.Value(taskKey{}).(asynq.TaskInfo); made || l.found.Load() {
		return nil
	}
	_, err := l.inspector.GetTaskInfo(v.task.Queue, v.task.ID)
	if errors.Is(err, asynq.ErrTaskNotFound) || errors.Is(err, asynq.ErrQueueNotFound) {
		return errForeign
	}
	l.found.Store(err == nil)
	return err
}

// leave takes tasks out of the line, and returns so many others from that place on.
func (l *line) leave(ctx context.Context, hash string, from, most int, members ...string) ([]string, error) {
	args := []any{from, most}
	for _, m := range members {
		args = append(args, m)
	}
	return leaveScript.Run(ctx, l.rdb, []string{lineKey(hash)}, args...).StringSlice()
}

// until returns about how long it takes until so many tasks before one have ended. The first of the line, as many as
// run at a time, need not wait for each other.
func (l *line) until(ahead, limit int) time.Duration {
	return time.Duration(min(float64(l.pace())*float64(max(ahead-limit+1, 0))/float64(limit), math.MaxInt64/2))
}

// pace returns how long tasks run. Runs that end together may have moved the average too far.
func (l *line) pace() time.Duration { return max(time.Duration(l.mean.Load()), time.Millisecond) }

// near reports whether a task should wait in its worker: it was called, or its turn comes soon.
func (l *line) near(v *visit) bool {
	_, called := l.called.Load(v.member())
	return called || v.ahead < v.limit+workersOf(v.ctx).places() && l.until(v.ahead, v.limit) <= placeTime
}

// room returns how many tasks of the key of one that ends are called: as many as run while asynq looks for those that are due,
// and no more than may wait.
func (l *line) room(v *visit) int {
	return max(min(workersOf(v.ctx).free(), min(v.limit, mostListed)*int(lookTime/l.pace())+1), 1)
}

// delay returns when a task comes again at the latest, should nothing call it: not long before its turn.
func (l *line) delay(v *visit, least time.Duration) time.Duration {
	return max(least, min(l.until(v.ahead, v.limit)*3/2, longestDelay))
}

// enter puts a task into the line of its key. Without Redis it does without.
func (v *visit) enter() {
	defer v.surviveClient()
	ctx, cancel := context.WithTimeout(v.ctx, v.AskTimeout)
	defer cancel()
	ahead, isNew, err := v.line.enter(ctx, v)
	if err != nil {
		v.lineFailed(v.ctx, err)
		return
	}
	v.ahead, v.lined = ahead, true
	v.line.here.Store(v.member(), nil)
	if isNew && ahead >= v.limit { // the lock may be free for a moment between two tasks
		v.notYet = fmt.Errorf("%w: %d tasks of the key are before it", core.ErrNotAcquired, ahead)
	}
	if v.line.near(v) {
		v.waits = placeTime
	}
}

// leave takes a task that has run out of the line, and makes the next ones due.
func (v *visit) leave() {
	defer v.surviveClient()
	const weight = 5 // the newest counts for a fifth
	v.line.mean.Add(int64(time.Since(v.began)-v.line.pace()) / weight)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(v.ctx), v.AskTimeout)
	defer cancel()
	room := v.line.room(v)
	next, err := v.line.leave(ctx, v.ask.KeyHash, 0, min(v.limit, mostListed)+room, v.member())
	if err != nil {
		v.lineFailed(context.WithoutCancel(v.inside), err)
	}
	if len(next) == 0 {
		return
	}
	v.runs.visits.Add(1)
	go func() {
		defer v.runs.visits.Add(-1)
		v.call(next, room)
	}()
}

// call makes so many tasks of the visit's key due, the first ones of its line, of which it has read some. Tasks that are due
// already but do not come, because their queue is paused or their worker is dead, take no room from those behind them. Nor
// do those that run or wait in a worker.
func (v *visit) call(next []string, room int) {
	defer v.surviveClient()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(v.ctx), v.AskTimeout)
	defer cancel()
	most := mostCalled + min(v.limit, mostListed)
	for from := 0; len(next) > 0 && from < most; {
		var gone []string
		for _, m := range next {
			switch v.line.makeDue(m) {
			case isDue:
				room--
			case isGone:
				gone = append(gone, m)
			}
			if room == 0 {
				return
			}
		}
		from += len(next) - len(gone)
		var err error
		if next, err = v.line.leave(ctx, v.ask.KeyHash, from, len(next), gone...); err != nil {
			return
		}
	}
}

// called is what became of a call.
type called int

const (
	isDue       called = iota // the task is due now, or was made due a moment ago
	isElsewhere               // it is due for longer, as in a paused queue, or with a worker, which may be dead
	isGone                    // it stands in line no more: it has run, has failed, or was archived or deleted
)

// makeDue makes a task due. Only a task that a guard has deferred is touched: one that has failed waits for its own retry,
// and what is in the archive stays there.
func (l *line) makeDue(m string) called {
	if _, here := l.here.Load(m); here {
		return isElsewhere
	}
	if _, called := l.called.Load(m); called {
		return isDue
	}
	queue, id, _ := strings.Cut(m, "\x00")
	info, err := l.inspector.GetTaskInfo(queue, id)
	switch {
	case errors.Is(err, asynq.ErrTaskNotFound), errors.Is(err, asynq.ErrQueueNotFound):
		return isGone
	case err != nil: // it comes when its delay is over
		return isElsewhere
	case info.State == asynq.TaskStateRetry && strings.Contains(info.LastErr, deferredText):
		if l.inspector.RunTask(queue, id) == nil {
			l.called.Store(m, nil)
			time.AfterFunc(calledFor, func() { l.called.Delete(m) })
			return isDue
		}
	case info.State != asynq.TaskStateActive && info.State != asynq.TaskStatePending:
		return isGone
	}
	return isElsewhere
}

// IncidentLine is the kind of a [core.Incident] of [WithLine]: a task was not added to its line or not removed from it.
const IncidentLine core.IncidentKind = "line"

const logLine = "holdfast: asynqlock: a task was not added to its line or not removed from it"

// lineFailed reports that Redis did not do what was asked for.
func (v *visit) lineFailed(ctx context.Context, err error) {
	v.Event(ctx, slog.LevelWarn, "line", logLine, v.ask.Work, err, v.attrs()...)
	v.Incident(ctx, core.Incident{Work: v.ask.Work, Kind: IncidentLine, Err: err})
}

// surviveClient recovers from a panic of the user's Redis client or its hooks. It must neither end the process nor turn
// a run that has succeeded into a failure, which asynq would repeat.
func (v *visit) surviveClient() {
	if p := recover(); p != nil {
		v.Event(v.ctx, slog.LevelWarn, "line", logLine, v.ask.Work, fmt.Errorf("panic: %v", p), v.attrs()...)
	}
}
