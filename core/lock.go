package core

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// Lock is a lock by name, of some strategy. It is cheap to make and holds nothing: the [Lease] is what is held. Many
// goroutines may use a Lock at once. The methods of a [Client] and of a [Redlock] make locks. Those of a nil Lock return
// [ErrInvalidOption].
type Lock struct {
	handle
	kind lockKind
}

// handle is embedded without a name that users could see.
type handle = seal.Handle

// Strategy makes locks of one kind by name; adapters take a Strategy. The methods of [Client] are strategies, and so
// is any function of this type.
type Strategy = func(name string, opts ...LockOption) *Lock

// lockKind is what distinguishes the lock of a strategy from a [Multi].
type lockKind interface {
	seal.Source
	// fullName implements [Lock.Name].
	fullName() string
	// check returns what is wrong with the name or the options.
	check() error
	// acquire asks for the lock once, or waits for it.
	acquire(ctx context.Context, try bool, opts []LockOption) (*Lease, error)
	// join makes the lock part of a Multi.
	join(*multiLock)
}

// is returns the kind of the lock, or the error of a lock that does not exist.
func (l *Lock) is() (lockKind, error) {
	if l == nil || l.kind == nil {
		return nil, invalidOption("the Lock is nil")
	}
	return l.kind, nil
}

// Name returns the name of the lock, without prefix. For a [Multi] it returns the names of its members, joined by "+".
func (l *Lock) Name() string {
	kind, err := l.is()
	if err != nil {
		return ""
	}
	return kind.fullName()
}

// Check returns the error with which Lock would refuse the name or the options of the lock, or nil. It does no I/O. It is for
// code that gets a [Strategy] long before use, and can check a lock of any name.
func (l *Lock) Check() error {
	kind, err := l.is()
	if err != nil {
		return err
	}
	return kind.check()
}

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
func (l *Lock) Lock(ctx context.Context, opts ...LockOption) (*Lease, error) {
	kind, err := l.is()
	if err != nil {
		return nil, err
	}
	return kind.acquire(ctx, false, opts)
}

// TryLock asks once and does not wait for a holder. Errors are those of Lock.
func (l *Lock) TryLock(ctx context.Context, opts ...LockOption) (*Lease, error) {
	kind, err := l.is()
	if err != nil {
		return nil, err
	}
	return kind.acquire(ctx, true, opts)
}

// singleLock is the lock of a strategy.
type singleLock struct {
	lock     Lock // itself, for users
	engine   *engine
	name     string
	keys     script.Keys
	args     script.ScriptArgs // what all holds have in common
	strategy script.Strategy
	config   lockConfig
	err      error // name refused

	abilities script.Abilities // of the strategy
}

func (e *engine) newLock(name string, p script.Strategy, opts []LockOption) *singleLock {
	l := &singleLock{engine: e, name: name, strategy: p, abilities: p.Abilities(), config: e.lock.with(opts)}
	l.lock = Lock{seal.HandleOf(l), l}
	l.keys, l.err = keysOf(e.prefix, name)
	l.args = script.ScriptArgs{Lock: l.keys.Lock, WaitingClients: l.keys.WaitingClients}
	return l
}

func (l *singleLock) fullName() string { return l.name }

// Facts implements [seal.Source].
func (l *singleLock) Facts() seal.Facts {
	return seal.Facts{
		Logger: l.engine.logger, Hooks: &l.engine.hooks, Instance: l.engine.instance, NewOwner: newOwner, Mode: string(modeOf(l.strategy)), Limit: l.config.limit / max(l.config.permits, 1),
	}
}

func (l *singleLock) acquire(ctx context.Context, try bool, opts []LockOption) (*Lease, error) {
	config := l.config.with(opts)
	if l.err != nil {
		return nil, l.err
	}
	if err := config.check(l.engine.redis); err != nil {
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
			_ = lease.release(ctx, script.NeverHeld)
		}
	}()
	lease, err = a.run(ctx)
	ran = true
	a.acquireEnds(ctx, &a.Hold, a.parentOf(0, &a.Hold), a.grant.Token, began, err)
	handed = true
	a.recycle()
	return lease, err
}

func (l *singleLock) check() error {
	if l.err != nil {
		return l.err
	}
	return l.config.check(l.engine.redis)
}

// keysOf returns the keys of a name, or [ErrInvalidName].
func keysOf(prefix, name string) (script.Keys, error) {
	k, err := script.KeysOf(prefix, name)
	if err != nil {
		return script.Keys{}, fmt.Errorf("%w: %w", ErrInvalidName, err)
	}
	return k, nil
}

// Mutex returns a reentrant lock for one owner at a time. Mutex does no I/O; Lock and TryLock report a wrong name or
// option.
//
// Its state in Redis is that of Redisson's RLock, so Go and Java exclude and wake each other on the same key (see
// [WithPrefix]).
func (c *Client) Mutex(name string, opts ...LockOption) *Lock {
	return &c.newLock(name, c.mutex, opts).lock
}

// Fair returns a reentrant lock that is granted in the order of arrival, across all processes. Fair does no I/O; Lock
// and TryLock report a wrong name or option.
//
// The order is that in which requests reach Redis, which numbers them: no clock of a client takes part. Unlocking
// grants the lock to the next waiter at once. A waiter that you cancel leaves the queue at once. A waiter that crashes
// delays the others by some seconds at most. TryLock fails if a waiter is in the queue.
//
// The lock excludes every other strategy on the same name. Only waiters of Fair, [Client.FairRead] and
// [Client.FairWrite] are in its queue: use one strategy for one name. Fair costs a little more than [Client.Mutex],
// which has no order between processes.
func (c *Client) Fair(name string, opts ...LockOption) *Lock {
	return &c.newLock(name, c.queue("fair"), opts).lock
}

// Read returns the read side of a read-write lock: any number of owners hold it at once, but none while the lock is
// held for writing. Read does no I/O; Lock and TryLock report a wrong name or option.
//
// Turns are those of [sync.RWMutex]. A waiting writer holds back new readers, and the readers that waited while it
// wrote go before the next writer. So neither side starves the other. Writers get the lock in the order of arrival,
// across all processes. After a writer that crashed, or was forced out, the order of arrival applies to all.
//
// Both sides are reentrant. An owner that writes may also read, and may then unlock the write side first, which lets
// the waiting readers in at once. An owner that reads cannot write: it gets [ErrUpgrade], because it would wait for
// itself. Reading again never waits.
//
// Every hold has its own TTL. A crashed reader blocks writers until its own TTL expires, whatever other readers do.
//
// The lock excludes every other strategy on the same name.
func (c *Client) Read(name string, opts ...LockOption) *Lock {
	return &c.newLock(name, c.queue("reading"), opts).lock
}

// Write returns the write side of a read-write lock: one owner holds it, and no owner holds the read side meanwhile.
// See [Client.Read].
func (c *Client) Write(name string, opts ...LockOption) *Lock {
	writing := c.queue("writing")
	writing.ReadersNext = true
	return &c.newLock(name, writing, opts).lock
}

// FairRead returns the read side of a read-write lock that follows strictly the order of arrival, with neighbouring
// readers together. Otherwise it is [Client.Read].
func (c *Client) FairRead(name string, opts ...LockOption) *Lock {
	return &c.newLock(name, c.queue("reading"), opts).lock
}

// FairWrite returns the write side of a read-write lock that follows strictly the order of arrival. See
// [Client.FairRead].
func (c *Client) FairWrite(name string, opts ...LockOption) *Lock {
	return &c.newLock(name, c.queue("writing"), opts).lock
}

// queue returns the strategy of a lock with a queue in Redis. That of readers is the same for both kinds: which waiter follows a
// writer is decided when the write ends.
func (c *Client) queue(mode string) script.Queue {
	return script.Queue{Instance: c.server.Instance, Mode: mode}
}
