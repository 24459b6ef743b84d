package core

import (
	"context"
	"fmt"

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
	//   - [ErrPermission], [ErrMisconfigured], [ErrInvalidName], [ErrInvalidOption], [ErrWrongType], [ErrClosed].
	//   - Other errors of Redis or go-redis unchanged: a full memory (OOM), a closed go-redis client, a panic of its
	//     hooks.
	Lock(ctx context.Context, opts ...LockOption) (*Lease, error)
	// TryLock asks once and does not wait for a holder. Errors are those of Lock.
	TryLock(ctx context.Context, opts ...LockOption) (*Lease, error)
}

// Strategy makes locks of one kind by name; adapters take a Strategy. The methods of [Client] are strategies, and so
// is any function of this type.
type Strategy = func(name string, opts ...LockOption) Locker

// locker is the [Locker] of every strategy.
type locker struct {
	engine   *engine
	name     string
	keys     lockscript.Keys
	args     lockscript.ScriptArgs // what all holds have in common
	strategy lockscript.Strategy
	config   lockConfig
	err      error // name refused
}

func (e *engine) locker(name string, p lockscript.Strategy, opts []LockOption) *locker {
	l := &locker{engine: e, name: name, strategy: p, config: e.lock.with(opts)}
	l.keys, l.err = keysOf(e.prefix, name)
	l.args = lockscript.ScriptArgs{Lock: l.keys.Lock, WaitingClients: l.keys.WaitingClients}
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
	if err := config.check(l.engine.redis, l.limit()); err != nil {
		return nil, err
	}
	if try {
		config.wait = 0
	}
	e := l.engine
	if !e.operations.Start() {
		return nil, ErrClosed
	}
	defer e.operations.Finish()
	a := l.newAcquisition(ctx, config)
	began := e.nowFor(e.hooks.AcquireEnd != nil)
	ctx = e.acquireStarts(ctx, l.strategy, &a.Hold, try)
	var lease *Lease
	var err error
	ran, handed := false, false
	defer func() {
		switch {
		case !ran: // the hook of the wait panics: the others have to see the call end
			a.acquireEnds(ctx, &a.Hold, nil, 0, began, errHookPanics)
		case lease != nil && !handed: // the hook panics: no caller gets the lease
			_ = lease.release(ctx, lockscript.NeverHeld)
		}
	}()
	lease, err = a.run(ctx)
	ran = true
	a.acquireEnds(ctx, &a.Hold, a.parentAt(0), a.grant.Token, began, err)
	handed = true
	a.recycle()
	return lease, err
}

// CheckLocker returns the error with which l would refuse its name or its options, or nil. It is for adapters, which get a
// [Strategy] long before use: they can check a Locker for any name. A Locker of another package may have a method Check() error
// for it. CheckLocker does no I/O.
func CheckLocker(l Locker) error {
	switch l := l.(type) {
	case nil:
		return invalidOption("the strategy returns a nil Locker")
	case *locker:
		return l.check()
	case *multi:
		for _, member := range l.members {
			if err := CheckLocker(member.Locker); err != nil {
				return err
			}
		}
		return l.err
	case interface{ Check() error }:
		return l.Check()
	}
	return nil
}

// check returns what is wrong with the name or the options.
func (l *locker) check() error {
	if l.err != nil {
		return l.err
	}
	return l.config.check(l.engine.redis, l.limit())
}

// keysOf returns the keys of a name, or [ErrInvalidName].
func keysOf(prefix, name string) (lockscript.Keys, error) {
	k, err := lockscript.KeysOf(prefix, name)
	if err != nil {
		return lockscript.Keys{}, fmt.Errorf("%w: %w", ErrInvalidName, err)
	}
	return k, nil
}
