package core

import (
	"context"

	"github.com/holdfast-go/holdfast/core/internal/lockscript"
)

// Locker is a lock by name, of some strategy. It is cheap to make and holds nothing: the [Lease] is what is held. Many
// goroutines may use a Locker at once.
type Locker interface {
	// Name returns the name of the lock, without prefix. For a [Multi] it returns the names of its members, joined by
	// "+".
	Name() string
	// Lock waits until the lock is granted or ctx ends; ctx bounds the waiting, not the holding. Lock enters the lock
	// again if ctx is, or descends from, the context of a valid lease of this lock.
	//
	// With an error, nothing is held, now or later. Errors:
	//
	//   - [ErrNotAcquired] if ctx or [WithWait] ended first. It is also the context's error if that was the reason.
	//   - [ErrTooManyWaiters], with ErrNotAcquired.
	//   - [ErrUnavailable] with the connection's error if Redis did not answer. Lock endures an outage of some
	//     seconds.
	//   - [ErrPermission], [ErrInvalidName], [ErrInvalidOption], [ErrWrongType], [ErrClosed].
	//   - Other errors of Redis or go-redis unchanged: a full memory (OOM), a closed go-redis client, a panic of its
	//     hooks.
	Lock(ctx context.Context, opts ...LockOption) (*Lease, error)
	// TryLock asks once and does not wait for a holder. Errors are those of Lock.
	TryLock(ctx context.Context, opts ...LockOption) (*Lease, error)
}

// Strategy makes locks of one kind by name; adapters take a Strategy. The methods of [Client] are strategies, and so
// is any function of this type.
type Strategy = func(name string, opts ...LockOption) Locker

// locker is the [Locker] of every protocol: it decides when to ask, the protocol what to ask.
type locker struct {
	keeper   *keeper
	name     string
	keys     lockscript.Keys
	boxed    lockscript.ScriptArgs // what all holds have in common
	protocol lockscript.Strategy
	config   lockConfig
	err      error // name refused
}

func (k *keeper) locker(name string, p lockscript.Strategy, opts []LockOption) *locker {
	l := &locker{keeper: k, name: name, protocol: p, config: k.lock.with(opts)}
	l.keys, l.err = keysOf(k.prefix, name)
	l.boxed = lockscript.ScriptArgs{Lock: l.keys.Lock, Token: l.keys.Token, WaitingClients: l.keys.WaitingClients}
	return l
}

func (l *locker) Name() string { return l.name }

func (l *locker) Lock(ctx context.Context, opts ...LockOption) (*Lease, error) {
	return l.acquire(ctx, false, opts)
}

func (l *locker) TryLock(ctx context.Context, opts ...LockOption) (*Lease, error) {
	return l.acquire(ctx, true, opts)
}

func (l *locker) acquire(ctx context.Context, try bool, opts []LockOption) (*Lease, error) {
	config := l.config.with(opts)
	if l.err != nil {
		return nil, l.err
	}
	if err := config.check(l.keeper.redis); err != nil {
		return nil, err
	}
	if try {
		config.wait = 0
	}
	k := l.keeper
	if !k.operations.Start() {
		return nil, ErrClosed
	}
	defer k.operations.Finish()
	r := l.newAcquisition(ctx, config)
	began := k.nowFor(k.hooks.AcquireEnd != nil)
	ctx = k.hooks.acquireStart(ctx, AcquireStart{Name: l.name, Owner: r.hold.Owner, Try: try})
	lease, err := r.run(ctx)
	end := AcquireEnd{
		Name: l.name, Owner: r.hold.Owner, Waited: k.nowFor(k.hooks.AcquireEnd != nil).Sub(began), Asked: r.requests, Err: err,
	}
	if lease != nil {
		end.Token = lease.token
	}
	handed := false
	defer func() {
		if lease != nil && !handed { // the hook panics: no caller gets the lease
			_ = lease.release(ctx, lockscript.NeverHeld)
		}
	}()
	k.hooks.acquireEnd(ctx, end)
	handed = true
	r.recycle()
	return lease, err
}
