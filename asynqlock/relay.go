package asynqlock

import (
	"cmp"
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/hibiken/asynq"

	guards "github.com/holdfast-go/holdfast/internal/guard"
)

const (
	// relayInterval is how long called tasks have to begin a run in this process before the next ones are called.
	relayInterval = 2 * lookTime
	// relayLimit bounds how many calls of a relay reach no further task. Why: another server may run a task of the key
	// for hours, and each call costs the first tasks of the line a deferral.
	relayLimit = 5
	// probeInterval is how often one task of a line is called to look for a permit that nobody uses.
	probeInterval = 10 * time.Second
)

// relays repeat the calls of lines whose next tasks were called. Why: a called task may never arrive at the guard. Its
// queue is paused, its deadline has passed, a middleware in front fails, or its worker crashed. No run would then end
// that calls the tasks behind it.
//
// If several tasks of a key may run at a time, each run that ends is owed the beginning of another one: one beginning
// does not say that the others were followed too. While some of them run, a permit may also become free without the
// end of a run, because another server has crashed. So a relay then calls one task from time to time. If that task
// finds a permit, the relay looks for further ones at once.
type relays struct {
	interval, probe time.Duration // relayInterval and probeInterval if 0

	mu   sync.Mutex
	keys map[string]*relay
}

// relay repeats the calls of one key.
type relay struct {
	timer  *time.Timer
	again  callAgain
	runs   int // in this process, of tasks that may run beside others
	owed   int // beginnings
	vain   int // calls that reached no further task
	called map[string]struct{}
	probed map[string]struct{} // the last probe
}

// callAgain makes the next tasks due, so many at most, and returns those that are due.
type callAgain func(ctx context.Context, most int) []string

// begin notes that a task of the key begins to run: its end is what calls the next ones. The limit is how many tasks
// may run at a time.
func (r *relays) begin(hash, task string, limit int, again callAgain) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := r.keys[hash]
	switch {
	case one == nil && limit == 1:
		return
	case one == nil:
		one = r.add(hash)
	}
	if limit > 1 {
		one.runs++
		one.again = again
	}
	if _, probed := one.probed[task]; probed {
		one.probed = nil
		r.call(one, limit, 0)
	}
	if one.owed = max(one.owed-1, 0); one.owed == 0 {
		r.rest(hash, one)
	}
}

// end notes that a run of the key has ended. If tasks are left in the line, its relay calls again after each interval,
// until as many runs have begun, or until it has reached no further task relayLimit times.
func (r *relays) end(hash string, limit int, left bool, again callAgain) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := r.keys[hash]
	switch {
	case one == nil && !left:
		return
	case one == nil:
		one = r.add(hash)
	}
	if limit > 1 {
		one.runs = max(one.runs-1, 0)
	}
	one.again = again
	if left {
		r.call(one, min(one.owed+1, limit), r.every())
	} else {
		r.rest(hash, one)
	}
}

// add makes a relay whose timer has not been set; mu is held.
func (r *relays) add(hash string) *relay {
	if r.keys == nil {
		r.keys = make(map[string]*relay)
	}
	one := new(relay)
	one.timer = time.AfterFunc(math.MaxInt64, func() { r.fire(hash, one) })
	r.keys[hash] = one
	return one
}

// call begins to call until so many runs have begun; mu is held.
func (r *relays) call(one *relay, owed int, after time.Duration) {
	one.owed, one.vain, one.called = owed, 0, make(map[string]struct{})
	one.timer.Reset(after)
}

// rest ends the calls of a relay, but for the probes while tasks run that leave permits to others; mu is held.
func (r *relays) rest(hash string, one *relay) {
	one.owed, one.called = 0, nil
	if one.runs > 0 {
		one.timer.Reset(cmp.Or(r.probe, probeInterval))
		return
	}
	one.timer.Stop()
	delete(r.keys, hash)
}

func (r *relays) every() time.Duration { return cmp.Or(r.interval, relayInterval) }

func (r *relays) fire(hash string, one *relay) {
	again, most, ok := r.due(hash, one)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), guards.AskTimeout)
	defer cancel()
	made := again(ctx, most)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keys[hash] != one {
		return
	}
	if one.owed == 0 {
		one.probed = setOf(made)
		r.rest(hash, one)
		return
	}
	if !one.reaches(made) {
		one.vain++
	}
	if one.vain < relayLimit {
		one.timer.Reset(r.every())
	} else {
		r.rest(hash, one)
	}
}

// due returns how to call how many tasks, and false if a relay has ended.
func (r *relays) due(hash string, one *relay) (again callAgain, most int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one.owed == 0 {
		return one.again, 1, r.keys[hash] == one
	}
	return one.again, math.MaxInt, r.keys[hash] == one
}

// reaches adds tasks to those that the relay has made due, and returns true if one of them is new. A relay that steps
// over many tasks in a paused queue so reaches the tasks behind them.
func (o *relay) reaches(tasks []string) bool {
	before := len(o.called)
	for _, task := range tasks {
		o.called[task] = struct{}{}
	}
	return len(o.called) > before
}

func setOf(tasks []string) map[string]struct{} {
	set := make(map[string]struct{}, len(tasks))
	for _, task := range tasks {
		set[task] = struct{}{}
	}
	return set
}

// called tells what became of a call.
type called int

const (
	calledNow       called = iota // the task is due now, or was made due a moment ago
	calledElsewhere               // it is due for longer, as in a paused queue, or with a worker, which may be dead
	calledNobody                  // it stands in line no more: it has run, has failed, or was archived or deleted
	calledTooSoon                 // asynq has not deferred it yet
)

const (
	// mostCalled bounds how many places of a line one pass looks at, beyond those of the tasks that run.
	mostCalled = 100
	// earlyPause is how long asynq may take to defer a task that a guard has sent back, and earlyTries how often that is
	// waited for.
	earlyPause, earlyTries = 100 * time.Millisecond, 4
)

// pass makes the next tasks of a visit's key due, as many as there is room for. Tasks that are due already but do not
// come, because their queue is paused or their worker is dead, take no room from those behind them. Nor do those that
// run. next are the first ones in the line. It returns the tasks that are due.
func (l *line) pass(ctx context.Context, v *visit, next []string, room int) (due []string) {
	hash, most := v.ask.KeyHash, mostCalled+min(v.limit, mostListed)
	for range earlyTries {
		early := false
		for from := 0; room > 0 && len(next) > 0 && from < most; {
			var gone []string
			for _, m := range next {
				if room == 0 {
					return due
				}
				if _, runs := l.running.Load(m); runs || l.places.has(hash, m) {
					continue
				}
				switch l.call(m) {
				case calledNow:
					due = append(due, m)
					room--
				case calledNobody:
					gone = append(gone, m)
				case calledTooSoon:
					early = true
				}
			}
			from += len(next) - len(gone)
			var err error
			if next, err = l.leave(ctx, hash, from, len(next), gone...); err != nil {
				return due
			}
		}
		if !early || room == 0 || !sleep(ctx, earlyPause) {
			return due
		}
		var err error
		if next, err = l.leave(ctx, hash, 0, min(v.limit, mostListed)+room); err != nil {
			return due
		}
	}
	return due
}

// call makes a task due. Only a task that a guard has deferred is touched: one that has failed waits for its own retry,
// and what is in the archive stays there.
func (l *line) call(m string) called {
	switch {
	case l.called.has(m):
		return calledNow
	case l.elsewhere.has(m):
		return calledElsewhere
	}
	queue, id := split(m)
	info, err := l.inspector.GetTaskInfo(queue, id)
	switch {
	case errors.Is(err, asynq.ErrTaskNotFound), errors.Is(err, asynq.ErrQueueNotFound):
		return calledNobody
	case err != nil: // it comes when its delay is over
	case info.State == asynq.TaskStateActive && l.bounced.has(m):
		return calledTooSoon
	case info.State == asynq.TaskStateRetry && strings.Contains(info.LastErr, deferredText):
		if l.inspector.RunTask(queue, id) == nil {
			l.called.add(m)
			return calledNow
		}
	case info.State != asynq.TaskStateActive && info.State != asynq.TaskStatePending:
		return calledNobody
	}
	l.elsewhere.add(m)
	return calledElsewhere
}

// back notes that a task goes back into the line, where it may be called again.
func (l *line) back(m string) {
	l.bounced.add(m)
	l.called.remove(m)
	l.elsewhere.remove(m)
}

// recent is a set of names that are forgotten after some time.
type recent struct {
	keep time.Duration

	mu    sync.Mutex
	names map[string]time.Time // until when
	swept time.Time
}

func (r *recent) add(name string) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.names == nil {
		r.names = make(map[string]time.Time)
	}
	if now.Sub(r.swept) > r.keep {
		r.swept = now
		for other, until := range r.names {
			if until.Before(now) {
				delete(r.names, other)
			}
		}
	}
	r.names[name] = now.Add(r.keep)
}

func (r *recent) remove(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.names, name)
}

func (r *recent) has(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Now().Before(r.names[name])
}
