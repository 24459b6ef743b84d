package asynqlock

import (
	"cmp"
	"context"
	"math"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/outage"
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
	ctx, cancel := context.WithTimeout(context.Background(), outage.AskTimeout)
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
