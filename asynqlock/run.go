package asynqlock

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// run is a handler that runs behind a guard.
type run struct {
	*visit
	began   time.Time
	around  *run                                     // in which this one is, nil if it is the outermost
	client  *core.Client                             // of the record, nil for Exclusive
	attempt *core.Attempt                            // nil for Exclusive, and without Redis
	once    func(more ...core.OnceOption) *core.Once // the record, nil for Exclusive
	lease   leased                                   // nil without Redis

	word seal.Word // the handler's

	calm func() bool // stops looking out for the end of the task
	gone func()      // called at the end

	mu     sync.Mutex
	inside context.Context // the handler's; nil before there is one
	result []byte
	ended  bool
	grace  *time.Timer // of a zombie
}

// leased is what a run holds: a [core.Attempt] or a [core.Lease].
type leased interface{ Abandon() }

type runKey struct{}

// runFrom returns the innermost run of which ctx is the context, nil if there is none.
func runFrom(ctx context.Context) *run {
	r, _ := ctx.Value(runKey{}).(*run)
	return r
}

// recorded returns the innermost run behind Once of which ctx is the context, nil if there is none.
func recorded(ctx context.Context) *run {
	r := runFrom(ctx)
	for r != nil && r.client == nil {
		r = r.around
	}
	return r
}

// begin lists the run, and makes sure that it does not hold its lease for ever: asynq does not wait for a handler once
// it has done with its task. Who begins owes an end.
func (r *run) begin() {
	r.around, r.began = runFrom(r.ctx), time.Now()
	if r.lease == nil {
		return
	}
	r.guard.runs.add(r)
	r.calm = context.AfterFunc(r.ctx, r.outlived)
}

// end is called when everything that the run has to say is recorded.
func (r *run) end() {
	defer r.gone()
	if r.lease == nil {
		return
	}
	r.guard.runs.remove(r)
	r.calm()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	if r.grace != nil {
		r.grace.Stop()
	}
}

// outlived is called when the task has ended for asynq. The lease is renewed for some time yet: whoever gets the task
// next would otherwise run beside this handler.
func (r *run) outlived() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	since := time.Now()
	r.grace = time.AfterFunc(r.guard.ZombieGrace, func() {
		r.lease.Abandon()
		r.overrun(since)
	})
}

// context makes the context of the handler. It ends some time before that of asynq, see [WithCommitMargin].
func (r *run) context(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx = context.WithValue(ctx, runKey{}, r)
	if r.client != nil || recorded(r.ctx) == nil { // a record around a lock counts
		ctx = seal.WithRun(ctx, inside{r})
	}
	if until, ok := r.until(); ok {
		return context.WithDeadline(ctx, until)
	}
	return context.WithCancel(ctx)
}

// inside is a run behind [Once] as the context of its handler knows it: [core.Complete], [core.Release] and [core.Hold] act on
// it.
type inside struct{ run *run }

// Attempt implements [seal.Run].
func (i inside) Attempt() any { return i.run.attempt }

// KeyHash implements [seal.Run].
func (i inside) KeyHash() string { return i.run.hash }

// Declare implements [seal.Run]. If Redis does not confirm it, what was said counts all the same when the handler ends.
func (i inside) Declare(ctx context.Context, d seal.Disposition, reason string) error {
	r := i.run
	if r.client == nil {
		return core.ErrNotGuarded // Exclusive keeps no records
	}
	r.word.Set(d, reason)
	if r.attempt == nil {
		return fmt.Errorf("%w: the task runs without a record", core.ErrUnavailable)
	}
	return seal.RunFrom(r.attempt.Context()).Declare(ctx, d, reason)
}

// Said implements [seal.Run].
func (i inside) Said() (seal.Disposition, string) { return i.run.word.Said() }

// Degraded returns true if ctx is that of a task which runs without Redis, see [FailOpen]. There is no fencing token
// then.
func Degraded(ctx context.Context) bool {
	for r := runFrom(ctx); r != nil; r = r.around {
		if r.lease == nil {
			return true
		}
	}
	return false
}
