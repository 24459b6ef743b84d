package core

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/internal/seal"
)

// Do runs fn under the lock, and waits for the lock as [Lock.Lock] does. The context that fn gets carries the lease:
// locking the same name with it enters again, and [TokenFrom] finds the fencing token. It ends when ctx ends or the
// lease does, with [ErrLeaseLost] as its cause if the lease was lost.
//
// Do returns fn's error. If the lease was lost before fn returned, the error is ErrLeaseLost too, even if fn returned
// nil, because another owner may have held the lock meanwhile. A release that Redis did not confirm is no error of Do:
// fn was alone, and the lock expires. If fn panics, Do releases the lock, and the panic continues. If l or fn is nil, Do
// returns [ErrInvalidOption] before it asks Redis.
func (l *Lock) Do(ctx context.Context, fn func(context.Context) error, opts ...LockOption) error {
	return l.do(ctx, "Do", false, fn, opts)
}

// TryDo is [Lock.Do] with [Lock.TryLock]: it asks once and returns [ErrNotAcquired] if the lock is held.
func (l *Lock) TryDo(ctx context.Context, fn func(context.Context) error, opts ...LockOption) error {
	return l.do(ctx, "TryDo", true, fn, opts)
}

func (l *Lock) do(ctx context.Context, call string, try bool, fn func(context.Context) error, opts []LockOption) error {
	kind, err := l.is()
	if err != nil {
		return err
	}
	if fn == nil {
		return invalidOption("%s: the function is nil", call)
	}
	lease, err := kind.acquire(ctx, try, opts)
	if err != nil {
		return err
	}
	return lease.run(ctx, fn)
}

// run calls fn and unlocks, however fn ends.
func (l *Lease) run(ctx context.Context, fn func(context.Context) error) (err error) {
	held, cancel, unbind := l.end.Within(l.within(ctx), keptLease{l})
	defer func() {
		defer func() { unbind(); cancel(nil) }() // also if a hook panics
		lost := l.finish(ctx)                    // which ends held first: fn may have left goroutines behind
		if lost != nil && !errors.Is(err, lost) {
			err = errors.Join(err, lost)
		}
	}()
	return fn(held)
}

// Bind implements [seal.Lease].
func (l keptLease) Bind(ctx context.Context) (bound context.Context, cancel context.CancelFunc) {
	bound, end, unbind := l.end.Within(l.within(ctx), l)
	return bound, func() { unbind(); end(nil) }
}

// Facts implements [seal.Source].
func (l keptLease) Facts() seal.Facts {
	return seal.Facts{Logger: l.engine.logger, Hooks: &l.engine.hooks, Lease: l}
}

// finish unlocks and returns the cause if the lease had been lost.
func (l *Lease) finish(ctx context.Context) error {
	lost := l.end.Cause() // before Unlock gives it one
	err := l.Unlock(ctx)
	switch {
	case lost != nil:
		return lost
	case errors.Is(err, ErrNotHeld):
		return errTaken
	case err != nil:
		l.engine.logger.Warn("holdfast: lock not released, it expires after its TTL",
			"lock", digest(l.hold.Keys.Lock), "ttl", l.hold.TTL, "error", nameless(err))
	}
	return nil
}
