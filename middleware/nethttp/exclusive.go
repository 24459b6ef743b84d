package httplock

import (
	"context"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/httprecord"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// exclusive prevents two requests of one key from running at the same time, or more than n of them if its locks are
// semaphores ([core.Client.Limit]). Make it with [newExclusive]. It is safe
// for concurrent use.
type exclusive struct {
	guard
	locks *guards.Exclusive
}

// newExclusive returns an exclusive whose locks are made by strategy, or an error that names the wrong argument.
func newExclusive(strategy core.Strategy, key KeyFunc, s settings) (*exclusive, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	locks, err := guards.NewExclusive(httpPlace, strategy, s.forEngine())
	switch {
	case err != nil:
		return nil, err
	case key == nil:
		return nil, errNoKey
	}
	return &exclusive{newGuard(s, key, locks, &locks.Log), locks}, nil
}

func (e *exclusive) run(r *run) *Conflict {
	r.watched = watch(r.w)
	return e.do(r, r.watch)
}

// watch runs the handler, and returns how it ended.
func (r *run) watch(ctx context.Context) answered {
	w := r.watched
	r.handle(ctx, w.exposed())
	silent := !w.wrote() && !w.failed && ctx.Err() != nil
	if silent {
		w.Header().Del("Content-Length") // of the answer that the handler did not give
	}
	return answered{Status: w.status, Silent: silent, Reported: w.failed}
}

// answered is how a handler of an Exclusive ended.
type answered struct {
	Status   int  // of the answer
	Silent   bool // it has written nothing because its context was over
	Reported bool // it has reported errors, which something around the guard answers
}

// do calls handler under the lock of the request's key. It waits for the lock as long as the config says, at most until
// ctx ends, and at most so long that an answer can still be written. If it cannot call handler it returns a [Conflict], the reason
// for the refusal. After that it returns nil, unless the handler was silent: then the Conflict is what to answer in its place, 503
// not-answered. It is nil all the same if a guard around this one that keeps records is going to answer. The outcome is recorded
// nowhere, so the same request would run again: such a Conflict is not retryable.
//
// The context of handler carries the lease. It ends when ctx ends or the lease is lost, and a lock of the same key in it
// enters again. The lease is kept until handler returns, even if the client leaves. If handler panics or calls runtime.Goexit,
// Do releases the lock, and the panic or Goexit continues.
func (e *exclusive) do(r *run, handler func(ctx context.Context) answered) *Conflict {
	switch {
	case r.key.IsZero():
		return r.refuseKey(ErrKeyRequired)
	case early(r.came.Header):
		return r.refuseKey(errEarly)
	}
	hash := r.key.HashWith(e.KeySecret)
	r.named(httprecord.Prefix+hash, hash)
	_, _ = e.locks.Do(r.came.Context(), r.ask, guards.Run{
		Call: func(ctx context.Context) { r.answered = handler(r.begin(ctx)) },
		Judge: func(o *guards.Outcome) {
			if a := r.answered; o.Returned && !r.refused(a.Status, a.Reported, a.Silent) {
				o.Err = failureOf(a.Status, !a.Silent, a.Reported)
			}
		},
		Refuse: func(ctx context.Context, not *core.NotRun) {
			code := lockCode(ctx, not.Err)
			if code == CodeLockConflict && seal.FactsOf(e.locks.Of(r.ask)).Limit > 0 { // a semaphore's
				code = CodeLimitReached
			}
			r.conflict = newConflict(code, not.Err)
			r.conflict.tell(ctx, not)
		},
	})
	if r.answered.Silent {
		return r.unanswered()
	}
	return r.conflict
}
