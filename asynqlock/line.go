package asynqlock

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/outage"
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
	// placeTime is how long a task waits in its worker to be called, before it goes back into the line.
	placeTime = 5 * time.Second
	// calledFor is how long a task that was called is not called once more.
	calledFor = 2 * time.Second
	// mostListed bounds how many places of a line one script returns.
	mostListed = 1000
	// longestDelay is when a task far behind in a line comes again at the latest, should nothing call it.
	longestDelay = 10 * time.Minute
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
	pace      pace
	places    places
	relays    relays
	running   sync.Map // the tasks in lines that run in this process
	called    recent   // tasks that were made due
	elsewhere recent   // tasks that were found to be due already, or with a worker
	bounced   recent   // tasks that went back into the line, of which asynq may not know that yet
	found     atomic.Bool
}

func newLine(rdb redis.UniversalClient) *line {
	return &line{
		rdb: rdb, inspector: asynq.NewInspectorFromRedisClient(rdb),
		called: recent{keep: calledFor}, elsewhere: recent{keep: calledFor}, bounced: recent{keep: time.Second},
	}
}

func lineKey(hash string) string { return "asynqlock:line:{" + hash + "}" }

// member names a task in a line.
func member(queue, id string) string { return join(queue, id) }

// spot is the place of a task in the line of its key.
type spot struct {
	ahead int   // tasks before it, of which the first one may be running
	came  int64 // when it came for the first time
	again bool  // it was there before
}

// errForeign says that the client of a line leads to another Redis than the one that asynq has the task from.
var errForeign = errors.New("holdfast: asynqlock: WithLine: the running task is not in the Redis of this client: pass " +
	"one of the Redis and database that asynq's queues are in")

// enter puts a task into the line, or finds it there.
func (l *line) enter(ctx context.Context, v *visit) (spot, error) {
	if err := l.find(v); err != nil {
		return spot{}, err
	}
	reply, err := enterScript.Run(ctx, l.rdb, []string{lineKey(v.hash)}, member(v.task.Queue, v.task.ID),
		lineTime.Milliseconds()).Int64Slice()
	if err != nil {
		return spot{}, err
	}
	if len(reply) != 3 || reply[0] < 0 || reply[1] < 0 || reply[1] >= 1<<53 {
		return spot{}, fmt.Errorf("holdfast: asynqlock: unexpected reply of %d numbers from Redis to enter.lua", len(reply))
	}
	return spot{ahead: int(min(reply[0], math.MaxInt32)), came: reply[1], again: reply[2] == 0}, nil
}

// find looks once whether asynq's tasks are in this Redis. A line elsewhere would never call any.
func (l *line) find(v *visit) error {
	if _, made := v.ctx.Value(taskKey{}).(taskInfo); made || l.found.Load() {
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

// width returns how many of the first tasks of a key should be in workers, the running ones among them: as many as run
// while asynq looks for those that are due, and no more than may wait.
func (l *line) width(hash string, limit int, w *workers) int {
	limit = min(limit, mostListed)
	return limit + min(limit*int(lookTime/l.pace.mean(hash))+1, w.places())
}

// until returns about how long it takes until so many tasks before one have ended. The first of the line, as many as
// run at a time, need not wait for each other.
func (l *line) until(hash string, ahead, limit int) float64 {
	return float64(l.pace.mean(hash)) * float64(max(ahead-limit+1, 0)) / float64(limit)
}

// near reports whether a task should wait in its worker: it is one of the first or was called, and its turn comes soon.
func (l *line) near(v *visit) bool {
	width := l.width(v.hash, v.limit, workersOf(v.ctx))
	first := v.spot.ahead < width || l.called.has(member(v.task.Queue, v.task.ID))
	return first && l.until(v.hash, min(v.spot.ahead, width), v.limit) <= float64(placeTime)
}

// delay returns when a task comes again at the latest, should nothing call it: not long before its turn.
func (l *line) delay(v *visit, least time.Duration) time.Duration {
	return max(least, time.Duration(min(1.5*l.until(v.hash, v.spot.ahead, v.limit), float64(longestDelay))))
}

// enter puts a task into the line of its key. Without Redis it does without.
func (e *exclusive) enter(v *visit) {
	if e.line == nil || v.task.ID == "" {
		return
	}
	defer v.surviveClient()
	ctx, cancel := context.WithTimeout(v.ctx, outage.AskTimeout)
	defer cancel()
	at, err := e.line.enter(ctx, v)
	if err != nil {
		v.lineFailed(v.ctx, err)
		return
	}
	v.spot, v.lined = at, true
	if e.line.near(v) {
		v.waits = placeTime
	}
}

// begun notes that a task in a line runs: its end is what calls the next ones.
func (e *exclusive) begun(r *run) {
	v := r.visit
	if !v.lined {
		return
	}
	m := member(v.task.Queue, v.task.ID)
	e.line.running.Store(m, nil)
	e.line.relays.begin(v.hash, m, v.limit, e.callAgain(v))
}

// callAgain returns what makes the next tasks due, so many at most, should those that were called not come.
func (e *exclusive) callAgain(v *visit) func(ctx context.Context, most int) []string {
	w := workersOf(v.ctx)
	return func(ctx context.Context, most int) []string {
		defer v.surviveClient()
		next, err := e.line.leave(ctx, v.hash, 0, e.line.width(v.hash, v.limit, w))
		if err != nil {
			return nil
		}
		return e.line.pass(ctx, v, next, min(max(w.free(v.hash), 1), most))
	}
}

// leave takes a task that has run out of the line, and makes the next ones due.
func (e *exclusive) leave(r *run) {
	v := r.visit
	if !v.lined {
		return
	}
	defer v.surviveClient()
	e.line.pace.add(v.hash, time.Since(r.began))
	m := member(v.task.Queue, v.task.ID)
	e.line.running.Delete(m)
	w := workersOf(v.ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(v.ctx), outage.AskTimeout)
	defer cancel()
	next, err := e.line.leave(ctx, v.hash, 0, e.line.width(v.hash, v.limit, w), m)
	if err != nil {
		v.lineFailed(r.values(), err)
	}
	e.line.relays.end(v.hash, v.limit, len(next) > 0 || err != nil, e.callAgain(v))
	if len(next) == 0 {
		return
	}
	e.runs.come()
	go func() {
		defer e.runs.leave()
		defer v.surviveClient()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), outage.AskTimeout)
		defer cancel()
		e.line.pass(ctx, v, next, max(w.free(v.hash), 1))
	}()
}

// surviveClient recovers from a panic of the user's Redis client or its hooks. It must neither end the process nor turn
// a run that has succeeded into a failure, which asynq would repeat.
func (v *visit) surviveClient() {
	if p := recover(); p != nil {
		v.warn("holdfast: asynqlock: the guard of a task has failed", "line", "operation", "line", "panic", p)
	}
}

// guess is taken for the time that a task of a key takes, until one has run.
const guess = time.Second

// mostPaces bounds for how many keys that is remembered.
const mostPaces = 10_000

// pace is how long the tasks of each key take, on the average of the last ones.
type pace struct {
	mu   sync.Mutex
	keys map[string]time.Duration
}

func (p *pace) add(hash string, held time.Duration) {
	const weight = 5 // the newest counts for a fifth
	held = max(held, time.Millisecond)
	p.mu.Lock()
	defer p.mu.Unlock()
	last, known := p.keys[hash]
	switch {
	case known:
		held = last + (held-last)/weight
	case p.keys == nil || len(p.keys) >= mostPaces:
		p.keys = make(map[string]time.Duration)
	}
	p.keys[hash] = held
}

func (p *pace) mean(hash string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if mean, known := p.keys[hash]; known {
		return mean
	}
	return guess
}
