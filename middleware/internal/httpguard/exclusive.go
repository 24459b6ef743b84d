package httpguard

import (
	"context"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/httprecord"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// Exclusive prevents two requests of one key from running at the same time, or more than n of them if its locks are
// semaphores ([core.Client.Limit]). Make it with [NewExclusive]. It is safe
// for concurrent use.
type Exclusive struct {
	guard
	locks *guards.Exclusive
}

// NewExclusive returns an Exclusive whose locks are made by strategy, or an error that names the wrong argument.
func NewExclusive(strategy core.Strategy, config Config) (*Exclusive, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	locks, err := guards.NewExclusive(Place, strategy, config.forEngine())
	if err != nil {
		return nil, err
	}
	return &Exclusive{newGuard(config, locks, &locks.Log), locks}, nil
}

// Do calls handler under the lock of the request's key. It waits for the lock as long as the config says, at most until
// ctx ends, and at most so long that an answer can still be written. Do returns nil after it has called handler, and
// otherwise a [Conflict], the reason for the refusal.
//
// The context of handler carries the lease. It ends when ctx ends or the lease is lost, and a lock of the same key in it
// enters again. The lease is kept until handler returns, even if the client leaves. If handler panics or calls runtime.Goexit,
// Do releases the lock, and the panic or Goexit continues. Handler returns why it has failed, see [FailureOf], for hooks.
func (e *Exclusive) Do(ctx context.Context, req Request, handler func(ctx context.Context) error) *Conflict {
	switch {
	case req.Key.IsZero():
		return e.Refuse(ctx, req.label(), ErrKeyRequired)
	case early(req.Header):
		return e.Refuse(ctx, req.label(), errEarly)
	}
	hash := req.Key.HashWith(e.config.KeySecret)
	r := e.newRun(ctx, req, httprecord.Prefix+hash, hash)
	_, _ = e.locks.Do(ctx, r.ask, guards.Run{
		Call: func(ctx context.Context) { r.failure = handler(r.begin(ctx)) },
		Judge: func(o *guards.Outcome) {
			if !r.refusedWith(r.failure) {
				o.Err = r.failure
			}
		},
		Refuse: func(ctx context.Context, not *core.NotRun) {
			code := lockCode(ctx, not.Err)
			if code == CodeLockConflict && seal.FactsOf(e.locks.Of(r.ask)).Limit > 0 { // a semaphore's
				code = CodeLimitReached
			}
			r.conflict = e.config.conflict(code, not.Err)
			r.conflict.tell(ctx, not)
		},
	})
	return r.conflict
}
