package asynqlock

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
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
	reply, err := enterScript.Run(ctx, l.rdb, []string{lineKey(v.ask.KeyHash)}, v.member(),
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
	width := l.width(v.ask.KeyHash, v.limit, workersOf(v.ctx))
	first := v.spot.ahead < width || l.called.has(v.member())
	return first && l.until(v.ask.KeyHash, min(v.spot.ahead, width), v.limit) <= float64(placeTime)
}

// delay returns when a task comes again at the latest, should nothing call it: not long before its turn.
func (l *line) delay(v *visit, least time.Duration) time.Duration {
	return max(least, time.Duration(min(1.5*l.until(v.ask.KeyHash, v.spot.ahead, v.limit), float64(longestDelay))))
}

// member names the task in its line.
func (v *visit) member() string { return member(v.task.Queue, v.task.ID) }

// enter puts a task into the line of its key. Without Redis it does without.
func (v *visit) enter() {
	defer v.surviveClient()
	ctx, cancel := context.WithTimeout(v.ctx, v.AskTimeout)
	defer cancel()
	at, err := v.line.enter(ctx, v)
	if err != nil {
		v.lineFailed(v.ctx, err)
		return
	}
	v.spot, v.lined = at, true
	if v.line.near(v) {
		v.waits = placeTime
	}
}

// inTurn asks for the lock of a task in a line, once it is the first one in this process.
func (v *visit) inTurn(ctx context.Context, wait time.Duration, ask asking) error {
	busy := fmt.Errorf("%w: %d tasks of the key are before it", core.ErrNotAcquired, v.spot.ahead)
	switch first := v.spot.ahead < v.limit; {
	case wait == 0 && !first && !v.spot.again:
		return busy // also if the lock is free, which it is for a moment between two tasks
	case wait == 0 && first && v.limit > 1:
		// There should be a permit for each of the first ones. In its place the task would be deferred while another one asks,
		// although both of them can run.
		return ask(ctx, 0)
	}
	place := v.line.places.take(v.ask.KeyHash, v.member(), v.spot.came)
	defer place.leave()
	until := time.Now().Add(wait)
	for {
		if !place.await(ctx, time.Until(until)) {
			return busy
		}
		err := busy
		overtaken := place.request(ctx, func(ctx context.Context) { err = ask(ctx, time.Until(until)) })
		if err == nil || !overtaken {
			return err
		}
	}
}

// standBack notes that a task in a line does not run, and may be called again.
func (v *visit) standBack() {
	if v.lined {
		v.line.back(v.member())
	}
}

// begun notes that a task in a line runs: its end is what calls the next ones.
func (v *visit) begun() {
	v.line.running.Store(v.member(), nil)
	v.line.relays.begin(v.ask.KeyHash, v.member(), v.limit, v.callAgain())
}

// callAgain returns what makes the next tasks due, so many at most, should those that were called not come.
func (v *visit) callAgain() func(ctx context.Context, most int) []string {
	w := workersOf(v.ctx)
	return func(ctx context.Context, most int) []string {
		defer v.surviveClient()
		next, err := v.line.leave(ctx, v.ask.KeyHash, 0, v.line.width(v.ask.KeyHash, v.limit, w))
		if err != nil {
			return nil
		}
		return v.line.pass(ctx, v, next, min(max(w.free(v.ask.KeyHash), 1), most))
	}
}

// leave takes a task that has run out of the line, and makes the next ones due.
func (v *visit) leave() {
	defer v.surviveClient()
	hash, w := v.ask.KeyHash, workersOf(v.ctx)
	v.line.pace.add(hash, time.Since(v.began))
	v.line.running.Delete(v.member())
	ctx, cancel := context.WithTimeout(context.WithoutCancel(v.ctx), v.AskTimeout)
	defer cancel()
	next, err := v.line.leave(ctx, hash, 0, v.line.width(hash, v.limit, w), v.member())
	if err != nil {
		v.lineFailed(context.WithoutCancel(v.inside), err)
	}
	v.line.relays.end(hash, v.limit, len(next) > 0 || err != nil, v.callAgain())
	if len(next) == 0 {
		return
	}
	v.runs.come()
	go func() {
		defer v.runs.leave()
		defer v.surviveClient()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), v.AskTimeout)
		defer cancel()
		v.line.pass(ctx, v, next, max(w.free(hash), 1))
	}()
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

// places are where tasks in this process wait for their turn, per key in the order of the line. Only the first one of a
// key asks for the lock, so that they get it in that order whatever the lock's own order is.
type places struct {
	mu   sync.Mutex
	keys map[string][]*place
}

// place is a task that waits.
type place struct {
	all    *places
	hash   string
	member string
	came   int64
	turn   chan struct{} // gets a value when the task may have become the first one
	yield  func()        // ends the request for the lock; nil while there is none
	late   bool          // a task that came before was put in front while the lock was being requested
}

// take puts a task into its place. It owes a leave.
func (all *places) take(hash, member string, came int64) *place {
	p := &place{all: all, hash: hash, member: member, came: came, turn: make(chan struct{}, 1)}
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.keys == nil {
		all.keys = make(map[string][]*place)
	}
	queue := all.keys[hash]
	i, _ := slices.BinarySearchFunc(queue, p, func(a, b *place) int { return int(a.came - b.came) })
	if i == 0 && len(queue) > 0 && queue[0].yield != nil {
		queue[0].late = true
		queue[0].yield()
	}
	all.keys[hash] = slices.Insert(queue, i, p)
	all.wake(hash)
	return p
}

// wake tells the first task of a key; mu is held.
func (all *places) wake(hash string) {
	if queue := all.keys[hash]; len(queue) > 0 {
		select {
		case queue[0].turn <- struct{}{}:
		default:
		}
	}
}

// has reports whether a task waits here.
func (all *places) has(hash, member string) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	return slices.ContainsFunc(all.keys[hash], func(p *place) bool { return p.member == member })
}

func (p *place) leave() {
	p.all.mu.Lock()
	defer p.all.mu.Unlock()
	queue := slices.DeleteFunc(p.all.keys[p.hash], func(other *place) bool { return other == p })
	if p.all.keys[p.hash] = queue; len(queue) == 0 {
		delete(p.all.keys, p.hash)
	}
	p.all.wake(p.hash)
}

// await returns true when the task is the first one, and false if the time is over before that or ctx ends.
func (p *place) await(ctx context.Context, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		if p.first() {
			return true
		}
		select {
		case <-p.turn:
		case <-timer.C:
			return p.first()
		case <-ctx.Done():
			return false
		}
	}
}

func (p *place) first() bool {
	p.all.mu.Lock()
	defer p.all.mu.Unlock()
	return p.all.keys[p.hash][0] == p
}

// request calls ask, which requests the lock, unless the task is not the first one any more. It reports whether another
// task was put in front meanwhile: then ask was cancelled, and the task waits for its turn again.
func (p *place) request(ctx context.Context, ask func(context.Context)) (overtaken bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.all.mu.Lock()
	if p.all.keys[p.hash][0] != p {
		p.all.mu.Unlock()
		return true
	}
	p.yield, p.late = cancel, false
	p.all.mu.Unlock()
	defer func() {
		p.all.mu.Lock()
		defer p.all.mu.Unlock()
		p.yield, overtaken = nil, p.late
	}()
	ask(ctx)
	return false
}
