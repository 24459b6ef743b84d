package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// running is a work item that may run, from the grant to the end of its record. Of a record it is the [seal.Run] in its context.
type running struct {
	*visit
	outer   *running        // in which it is; nil for the outermost
	grant   grant           // nil without Redis
	bound   context.Context // ends with the item or the lease; its Err asks the clock
	ctx     context.Context // of Call
	cancel  context.CancelFunc
	outcome *Outcome
	result  Outcome // to which it points
	began   time.Time

	word          seal.Word     // what the function has said
	proving       *seal.Proving // nil without a proof
	holdsFailures atomic.Bool
	handled       bool // the function has succeeded with the result of an earlier run, which its transaction has found

	calm  func() bool // stops the watch; nil before Call
	mu    sync.Mutex
	over  bool        // Call has ended
	grace *time.Timer // until it counts as an overrun
}

type runningKey struct{}

// runningFrom returns the innermost run of which ctx is the context, nil if there is none.
func runningFrom(ctx context.Context) *running {
	r, _ := seal.ContextOf(ctx).Value(runningKey{}).(*running)
	return r
}

// entered returns the innermost run of ctx for which same returns true, if it continues under its lease.
func entered(ctx context.Context, same func(*running) bool) *running {
	for r := runningFrom(ctx); r != nil; r = r.outer {
		if same(r) && r.goesOn() {
			return r
		}
	}
	return nil
}

// Degraded returns true if ctx belongs to a run that began without Redis, see [FailOpen], or is inside of one.
func Degraded(ctx context.Context) bool {
	for r := runningFrom(ctx); r != nil; r = r.outer {
		if r.outcome.Unguarded != nil {
			return true
		}
	}
	return false
}

// Abandon stops the renewal of the lease of the innermost run of ctx, as [core.Attempt.Abandon] does. It is for a process that
// ends while functions run.
func Abandon(ctx context.Context) {
	if r := runningFrom(ctx); r != nil && r.grant != nil {
		r.grant.Abandon()
	}
}

// newRunning binds the context of a run to its lease. The caller must call leave.
func (v *visit) newRunning(ctx context.Context, g grant, unguarded error) *running {
	r := &running{
		visit: v, outer: runningFrom(ctx), grant: g, began: time.Now(),
		result: Outcome{Unguarded: unguarded, Verdict: Withdrawn},
	}
	r.outcome = &r.result
	ctx, forget := r.detach(ctx)
	ctx = context.WithValue(ctx, runningKey{}, r)
	if g == nil {
		r.ctx, r.cancel = context.WithCancel(ctx)
	} else {
		r.ctx, r.cancel = g.Bind(ctx)
		r.outcome.Token, r.outcome.Attempt = g.Token(), g.Number()
	}
	if forget != nil {
		end := r.cancel
		r.cancel = func() { end(); forget() }
	}
	if v.once != nil {
		r.proving = v.newProving(g)
		r.ctx = seal.WithRun(r.ctx, r)
	}
	r.bound = r.ctx
	return r
}

// detach returns the context of a run whose item has that one. It ends with the leases of the runs around it, whatever their own
// contexts have come to. The caller must call forget unless it is nil.
func (r *running) detach(item context.Context) (ctx context.Context, forget context.CancelFunc) {
	if r.ask.Detached == Attached {
		return item, nil
	}
	ctx = context.WithoutCancel(item)
	if deadline, ok := item.Deadline(); ok && r.ask.Detached == FromClient {
		ctx, forget = context.WithDeadline(ctx, deadline)
	}
	for o := r.outer; o != nil; o = o.outer {
		if o.grant != nil {
			ctx, forget = endingWith(ctx, o.grant.Context(), forget)
		}
	}
	return ctx, forget
}

// endingWith returns a context that ends with ctx and with a lease. forget may be nil, and is called by the one that it returns.
func endingWith(ctx, lease context.Context, forget context.CancelFunc) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(lease, func() { end(context.Cause(lease)) })
	return ctx, func() {
		stop()
		end(nil)
		if forget != nil {
			forget()
		}
	}
}

// newProving returns what the store of the proof has to know of the run; nil without a proof.
func (v *visit) newProving(g grant) *seal.Proving {
	if attempt, ok := g.(attemptGrant); ok {
		return seal.AttemptOf(attempt.Attempt).Proving()
	}
	if newProving := seal.FactsOf(v.once.Of(v.ask)).NewProving; newProving != nil {
		return newProving()
	}
	return nil
}

// goesOn reports whether the function is still running under its lease.
func (r *running) goesOn() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.over && (r.grant == nil || r.grant.Context().Err() == nil)
}

// leave ends the context and the watch of a run.
func (r *running) leave() {
	r.end()
	r.cancel()
}

// end notes that Call has ended. It stops the watch, for which the end of the lease would otherwise start a goroutine.
func (r *running) end() {
	if r.calm != nil {
		r.calm()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	if r.grace != nil {
		r.grace.Stop()
	}
}

// do runs the item and records how it ended, also if a function of the place panics or calls [runtime.Goexit]. The error is why
// the item has not begun: then its grant is withdrawn. ctx is the item's.
func (r *running) do(ctx context.Context) (err error) {
	began := false
	defer func() {
		if !began {
			r.record()
		}
	}()
	for _, ended := range []context.Context{ctx, r.ctx} { // just when the turn of the item had come
		if ended.Err() != nil {
			return context.Cause(ended)
		}
	}
	if r.run.Around == nil {
		began = true
		r.call(r.ctx)
		return nil
	}
	err = r.run.Around(r.ctx, r.outcome, func(ctx context.Context) {
		began = true
		if token, ok := core.TokenFrom(ctx); ok && r.grant != nil {
			r.outcome.Token = token
		}
		r.call(&aroundContext{ctx, r.bound})
	})
	if began {
		return nil
	}
	return err
}

// call calls the hook and the function. What the hook has panicked about has not begun, but has ended for other hooks.
func (r *running) call(ctx context.Context) {
	o := r.outcome
	started := false
	defer func() {
		if !started {
			defer r.ended()
			r.record()
		}
	}()
	if o.Unguarded != nil {
		r.incident(ctx, core.IncidentUnguarded, o.Unguarded)
	}
	r.ctx = r.hooks.RunStart(ctx, core.RunStart{
		Work: r.ask.Work, Token: o.Token, Attempt: o.Attempt, Waited: time.Since(r.came),
	})
	started, o.Verdict, r.began = true, Failed, time.Now()
	r.calm = r.watch(ctx)
	defer r.conclude()
	r.run.Call(r.ctx)
	o.Returned = true
}

// aroundContext is a context that [Run.Around] has derived from the bound one. Its Err asks the clock about the lease, too. So a
// function that asks right after a suspend of the host gets the loss.
type aroundContext struct {
	context.Context
	bound context.Context
}

// Err implements context.Context.
func (c *aroundContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	lost := c.bound.Err() // which ends the context too, at once unless a foreign one is between
	return cmp.Or(c.Context.Err(), lost)
}

// lost returns why the lease was lost, nil if it was not. It asks the clock. That the function itself has ended its attempt is no
// loss.
func (r *running) lost() error {
	if r.bound.Err() == nil {
		return nil
	}
	lease := r.grant.Context() // the bound one may have ended with the item
	if lease.Err() == nil {
		return nil
	}
	cause := context.Cause(lease)
	if errors.Is(cause, core.ErrNotHeld) && !errors.Is(cause, core.ErrLeaseLost) {
		return nil
	}
	return cause
}

// conclude classifies how Call ended, records that and calls the hooks.
func (r *running) conclude() {
	o := r.outcome
	o.Took = time.Since(r.began)
	r.end()
	defer r.ended() // also if Judge, Value or a hook panics
	defer r.record()
	switch {
	case r.run.Judge != nil:
		r.run.Judge(o)
	case o.Returned:
		o.Verdict = Completed
	}
}

// ended reports to the hooks how the run ended.
func (r *running) ended() {
	o := r.outcome
	r.hooks.RunEnd(context.WithoutCancel(r.ctx), core.RunEnd{
		Work: r.ask.Work, Token: o.Token, Attempt: o.Attempt, State: o.State, Took: o.Took, Panicked: !o.Returned, Err: o.Err,
	})
}

// record records in Redis how the run ended, or has the memory of the guard do so later.
func (r *running) record() {
	o := r.outcome
	var value []byte
	var failure error
	defer func() { r.write(value, failure) }() // also if Value panics
	if r.once == nil {
		return
	}
	failed := o.Verdict != Completed
	r.decide()
	r.logCommitted(failed)
	if o.Verdict == Completed && !o.NoEffect && !r.proving.Begun() {
		r.Event(r.ctx, slog.LevelWarn, "unproven", logUnproven, r.ask.Work, nil)
	}
	o.State = o.Verdict.State()
	if o.Verdict == Completed && o.Value != nil {
		if value, failure = o.Value(); failure != nil {
			value = nil
		}
	}
}

// logCommitted logs what a run with a proof has left to nobody's notice: its failure after the commit, as its key does not run again, and
// a value that the place cannot give to a later caller.
func (r *running) logCommitted(failed bool) {
	value, committed, found := r.proving.Committed()
	if !committed || found != nil {
		return
	}
	if failed && r.outcome.Verdict == Completed {
		r.Event(r.ctx, slog.LevelWarn, "after commit", logAfterCommit, r.ask.Work, r.outcome.Err)
	}
	if r.FromProof != nil && len(value) > 0 && r.FromProof(r.ask, value) == nil {
		r.Event(r.ctx, slog.LevelWarn, "no response", logNoResponse, r.ask.Work, nil)
	}
}

const (
	logAfterCommit = "holdfast: the work failed after it had committed its effect with a proof, and does not run again"
	logNoResponse  = "holdfast: what the work committed with a proof is no response, so a caller whose record is lost gets none"
)

const logUnproven = "holdfast: work with a proof completed without its transaction, so nothing proves its effect"

// write ends the grant with a value. failure is why there is no value.
func (r *running) write(value []byte, failure error) {
	o, ctx := r.outcome, r.ctx
	if r.grant != nil {
		if lost := r.lost(); lost != nil {
			o.Lost = lost
		}
		bounded, cancel := r.finishing(ctx, r.ask)
		err := r.grant.end(bounded, r, value)
		cancel()
		switch stale := errors.Is(err, core.ErrStale); {
		case o.Lost == nil && (stale || errors.Is(err, core.ErrLeaseLost)):
			o.Lost = err
		case o.Lost != nil && stale:
			o.Lost = fmt.Errorf("%w: %w", o.Lost, err) // a later run counts instead
		}
		if errors.Is(err, core.ErrStale) || !errors.Is(err, core.ErrLeaseLost) {
			o.Unrecorded = err
		}
	}
	ctx = context.WithoutCancel(ctx)
	if r.once != nil {
		r.remember(value)
	}
	switch {
	case failure == nil:
	case o.Unrecorded == nil:
		o.Unrecorded = noResultError{failure}
	default:
		o.Unrecorded = errors.Join(o.Unrecorded, failure)
	}
	if o.State == core.StateUnknown {
		r.logUnknown(ctx, r.ask.Work, o.Reason)
	}
	if o.Lost != nil {
		r.incident(ctx, core.IncidentLost, o.Lost)
	}
	if o.Unrecorded != nil && !errors.Is(o.Unrecorded, core.ErrStale) {
		r.incident(ctx, core.IncidentUnrecorded, o.Unrecorded)
	}
}

// noResultError is the incident of a run whose end is recorded, but without its value.
type noResultError struct{ error }

// Unwrap returns why there is no value.
func (e noResultError) Unwrap() error { return e.error }

// watch ends the lease of a run that continues for longer than the grace after its context has ended: nobody may wait for its
// function any more, and it would keep its name for ever. Until then the lease is renewed, so that no other run is beside it.
func (r *running) watch(ctx context.Context) (stop func() bool) {
	if r.ZombieGrace <= 0 || r.grant == nil {
		return func() bool { return true }
	}
	return context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if !r.over {
			r.grace = time.AfterFunc(r.ZombieGrace, r.overrun)
		}
	})
}

// overrun is called when a run continues for longer than the grace. It runs on a goroutine of its own, where a panic of the place
// or of a hook would end the process.
func (r *running) overrun() {
	r.mu.Lock()
	over := r.over
	r.mu.Unlock()
	if over {
		return
	}
	ctx := context.WithoutCancel(r.ctx)
	defer r.recovered(ctx, r.ask.Work)
	defer r.incident(ctx, core.IncidentOverrun, context.Cause(r.ctx))
	defer r.grant.Abandon()
	if r.run.Overrun != nil {
		r.run.Overrun(ctx)
	}
}
