package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/acquire"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
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
		return nil, invalidOption("the Lock is nil: make it with a method of a Client, such as Mutex")
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
//   - [ErrUnavailable] with the connection's error if Redis did not reply. Lock endures an outage of some
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

// TryLock asks once and does not wait for a holder. It returns the same errors as Lock.
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
	args     script.LockArgs // what all holds have in common
	strategy script.Strategy
	config   *lockConfig
	err      error // name refused

	abilities script.Abilities // of the strategy
}

func (e *engine) newLock(name string, p script.Strategy, opts []LockOption) *singleLock {
	l := &singleLock{engine: e, name: name, strategy: p, abilities: p.Abilities(), config: e.lock.with(opts)}
	l.lock = Lock{seal.HandleOf(l), l}
	l.keys, l.err = keysOf(e.prefix, name)
	l.args = script.NewLockArgs(l.keys, l.abilities.Queue != nil)
	return l
}

func (l *singleLock) fullName() string { return l.name }

// Facts implements [seal.Source].
func (l *singleLock) Facts() seal.Facts {
	return seal.Facts{
		Logger: l.engine.logger, Hooks: &l.engine.hooks, Instance: l.engine.instance, NewOwner: newOwner,
		Lock: seal.Lock{Mode: string(modeOf(l.strategy)), Limit: l.config.limit / max(l.config.permits, 1)},
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
	e := l.engine
	if !e.operations.Start() {
		return nil, ErrClosed
	}
	defer e.operations.Finish()
	a := l.newAcquisition(ctx, config)
	if try {
		a.Wait = 0
	}
	if e.hooks.AcquireStart != nil || e.hooks.AcquireEnd != nil {
		return a.runWithHooks(ctx, try || config.once)
	}
	lease, err := a.run(ctx)
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
// Its state in Redis is the state of Redisson's RLock, so Go and Java exclude and wake each other on the same key (see
// [WithPrefix]).
//
// The callers of one client that wait for it are served in the order of arrival. If others of them wait, Unlock hands the lock
// over to the next one without asking Redis, for up to 20 ms after Redis has granted it; then other processes get their turn.
// Each lease has a token of its own. Redis shows the owner and the token of the first of these leases, and has no record of the
// others. Redis is not asked at a hand-over. So if it has lost the lock, or [Client.ForceUnlock] has taken it, callers of this client
// may still get it for up to 20 ms, with tokens smaller than that of the next owner in Redis, and Unlock returns nil when it hands
// over. Whoever holds it after that learns of the loss at once. A lease is not handed over if its context was used to enter the
// lock again, if it was extended, or if [Lease.Owner] was called: another process may have entered by that name, see [WithOwner].
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
// Readers and writers take turns as with [sync.RWMutex]. A waiting writer holds back new readers, and the readers that
// waited while it wrote go before the next writer. So neither side starves the other. Writers get the lock in the order
// of arrival, across all processes. After a writer that crashed, or was force-released, the order of arrival applies to
// all.
//
// Both sides are reentrant. An owner that writes may also read, and may then unlock the write side first, which lets
// the waiting readers in at once. An owner that reads cannot write: it gets [ErrUpgrade], because it would wait for
// itself. Reading again never waits.
//
// Every hold has its own TTL. A crashed reader blocks writers until its own TTL expires, whatever other readers do.
//
// The lock excludes every other strategy on the same name but [Client.Semaphore]: Read is granted while permits are in use, and
// a Semaphore with more permits than there are readers is granted beside them.
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

// Mode is how a lock is held, or how a call will hold it. The zero value means a free lock.
type Mode string

// The modes. A member of a [Multi] has its own.
const (
	ModeMutex     Mode = "mutex"     // by one owner, with [Client.Mutex] or Redisson's RLock
	ModeFair      Mode = "fair"      // by one owner, with [Client.Fair]
	ModeRead      Mode = "read"      // by readers, with [Client.Read] or [Client.FairRead]
	ModeWrite     Mode = "write"     // by a writer, which may also read, with [Client.Write] or [Client.FairWrite]
	ModeSemaphore Mode = "semaphore" // by owners with permits of a [Client.Semaphore], and perhaps by readers
	ModeRedlock   Mode = "redlock"   // by one owner on a majority of servers, with [Redlock.Mutex]
	ModeElection  Mode = "election"  // by the leader of an [Election]
	ModeOnce      Mode = "once"      // no lock: by an attempt of a [Once]; of hooks only in Wait, Renewed and Lost
)

// modeOf returns the mode in which a strategy holds.
func modeOf(s script.Strategy) Mode { return Mode(s.Name()) }

// lockConfig holds the effective options of one call: client defaults, then lock options, then call options.
type lockConfig struct {
	ttl     time.Duration
	wait    time.Duration // negative: as long as the context allows
	maxHold time.Duration
	minHold time.Duration
	owner   string
	fixed   bool
	fresh   bool // a new owner, whatever the context carries
	once    bool // ask until there is one answer, see askOnce
	ofMulti bool // the lock is part of a Multi
	// leavesLosses is true if a lost lease is left to expire in Redis, as after Abandon: a leader may need time to stop.
	leavesLosses bool
	permits      int // of a semaphore; 0 for any other lock
	limit        int // n of that semaphore; 0 for any other lock
	ack          transport.Ack
	restartDelay time.Duration // of a Redlock; 0 for none
	err          error         // the first invalid option
}

// hold returns a hold of a lock with these options, but without an ID.
func (c *lockConfig) hold(name string, k script.Keys) script.Hold {
	return script.Hold{Name: name, Keys: k, Owner: c.owner, TTL: c.ttl, MinHold: c.minHold, Ack: c.ack, Permits: c.permits, Limit: c.limit}
}

// with returns c with further options. It returns c itself if there are none.
func (c *lockConfig) with(opts []LockOption) *lockConfig {
	if len(opts) == 0 {
		return c
	}
	changed := *c
	for _, opt := range opts {
		if opt != nil {
			opt.applyLock(&changed)
		}
	}
	return &changed
}

// check returns the first invalid option, or what is wrong with them taken together, for locks on these servers.
func (c *lockConfig) check(rdbs []redis.UniversalClient) error {
	return cmp.Or(c.err, checkAck(c.ack, c.ttl, rdbs), checkPermits(c.permits, c.limit),
		checkRestartDelay(c.restartDelay, max(c.ttl, c.minHold)))
}

// checkPermits refuses permits that the lock cannot have. The limit is 0 for a lock that is not a semaphore.
func checkPermits(permits, limit int) error {
	switch {
	case limit == 0 && permits > 0:
		return invalidOption("WithPermits(%d): only a Semaphore has permits", permits)
	case permits > limit:
		return invalidOption("WithPermits(%d): the semaphore has only %d", permits, limit)
	}
	return nil
}

// checkRestartDelay refuses a lock that may last longer than the delay, because a server that has restarted votes after the
// delay, and lacks the lock.
func checkRestartDelay(delay, longest time.Duration) error {
	if delay == 0 || longest <= delay {
		return nil
	}
	return invalidOption("WithRestartDelay(%v): a TTL or WithMinHold of %v is longer, so a restarted server would grant the lock "+
		"while it is held", delay, longest)
}

// checkAck finds what is wrong with a timeout among the other options, and with the clients that should wait.
func checkAck(a transport.Ack, ttl time.Duration, rdbs []redis.UniversalClient) error {
	if !a.Wanted() {
		return nil
	}
	if len(rdbs) > 1 {
		return invalidOption("WithReplicaAck: not with a Redlock, whose masters have no replicas")
	}
	if a.Timeout >= ttl {
		return invalidOption("WithReplicaAck(%d, %v): a timeout shorter than the TTL of %v is needed",
			a.Replicas, a.Timeout, ttl)
	}
	for _, rdb := range rdbs {
		switch rdb.(type) {
		case *redis.Client, *redis.ClusterClient:
		default:
			// It may send WAIT to another server than the command before.
			return invalidOption("WithReplicaAck: not with a %T, only with *redis.Client and *redis.ClusterClient", rdb)
		}
	}
	return nil
}

// acquisition is one call of Lock, TryLock or Begin: it makes the lease of a grant, and the error of the API otherwise.
type acquisition struct {
	acquire.Acquisition
	engine *engine
	config *lockConfig

	parent *holding // the lease under which the hold was a re-entry at first; nil if there is none, see outer

	lease *Lease       // nil before a grant was accepted
	grant script.Grant // of the lease
}

// newAcquisition prepares the acquisition of one lock. Its memory comes from a pool.
func (l *singleLock) newAcquisition(ctx context.Context, config *lockConfig) *acquisition {
	e := l.engine
	a, _ := e.acquisitions.Get().(*acquisition)
	*a = acquisition{engine: e, config: config}
	a.Request = acquire.Request{
		Env: &e.acquiring, Strategy: l.strategy, Abilities: l.abilities, Caller: a, Wait: config.wait, SingleTry: config.once,
		Hold: config.hold(l.name, l.keys), RenewsGrants: !config.fixed && config.minHold == 0,
	}
	h := &a.Hold
	h.Args.LockArgs = l.args
	e.ids.Renew(h)
	if h.Owner != "" {
		a.Reenters, a.NamedOwner = true, true
		return a
	}
	// Only a lease of this very lock is entered again. Under the lease of another lock each call is a new owner. So the
	// tasks of one batch, which share the batch's lease, exclude each other here.
	parent := holdingFrom(ctx).of(e, h.Keys.Lock)
	if parent == nil || config.fresh {
		h.Owner = h.ID
		a.HandsOver = a.Abilities.HandsOver && a.RenewsGrants && !h.Ack.Wanted() && !config.ofMulti
		return a
	}
	a.parent, a.Parent, a.Reenters = parent, parent, true
	a.ForeignParent = h.Limit > 0 && !sameRedis(parent.lease.engine, e)
	h.Owner, h.ParentID = parent.lease.hold.Owner, parent.lease.hold.ID
	return a
}

// recycle returns the memory to the pool, if nothing else can refer to it.
func (a *acquisition) recycle() {
	if a.Reusable() {
		a.engine.acquisitions.Put(a)
	}
}

// run acquires the lock. Without a lease, it leaves no hold in Redis, and returns the error of the API.
func (a *acquisition) run(caller context.Context) (*Lease, error) {
	if err := a.Run(caller); err != nil {
		return nil, a.publicError(caller, err)
	}
	return a.lease, nil
}

// Accept implements acquire.Caller.
func (a *acquisition) Accept(ctx context.Context, h *script.Hold, g script.Grant) (err error) {
	a.lease, err = a.engine.newLease(ctx, a.Strategy, *h, g, a.config, a.outer().entered(a.engine, g.Token))
	if err == nil {
		a.lease.chain = a.Chain
		a.grant, a.grant.Token = g, a.lease.token
	}
	return err
}

// outer returns the lease under which the hold has entered; nil if there is none, or none any more.
func (a *acquisition) outer() *holding {
	if a.Parent == nil {
		return nil
	}
	return a.parent
}

// publicError returns the error of the API for the end of the acquisition.
func (a *acquisition) publicError(caller context.Context, err error) error {
	switch end := err.(type) {
	case *script.Refusal:
		if end.Kind == script.Upgrade {
			return fmt.Errorf("%w: unlock %q first", ErrUpgrade, a.Hold.Name)
		}
		return onceError(a.Hold.Name, end)
	case *acquire.FailedError:
		if end.Outage {
			return a.failed(unavailable(end.Err, nil))
		}
		return a.failed(failure(caller, a.Hold.Keys.Lock, end.Err))
	}
	switch err {
	case acquire.ErrTimeUp:
		return a.timeUpError(caller)
	case acquire.ErrWaiterLimit:
		return a.notAcquired(tooManyWaiters(a.engine.acquiring.Waits.Most))
	}
	return err
}

// timeUpError is the error of an acquisition whose time is up.
func (a *acquisition) timeUpError(caller context.Context) error {
	cause := ended(caller)
	switch {
	case cause == nil && a.engine.operations.IsClosed():
		return ErrClosed
	case a.LastErr != nil && !acquire.WaitEnded(a.LastErr):
		return a.failed(trouble(a.Hold.Keys.Lock, a.LastErr, cause))
	case a.LastErr != nil && a.LooksLikeOutage():
		cause = errors.Join(trouble(a.Hold.Keys.Lock, a.Outage, nil), cause)
	}
	return a.notAcquired(cause)
}

// failed is the error of an acquisition that another error has ended.
func (a *acquisition) failed(err error) error {
	what := "lock"
	if a.Hold.Terms != nil {
		what = "once"
	}
	return errorf("holdfast: %s %q: %w", what, a.Hold.Name, err)
}

// notAcquired is the error of an acquisition that another owner has kept from the lock, as far as is known.
func (a *acquisition) notAcquired(cause error) error {
	return &NotAcquiredError{
		Name: a.Hold.Name, RetryAfter: max(a.HolderTTL, 0), Holder: a.Holder, Instance: a.engine.directory.Instance(a.Holder), cause: cause,
	}
}

// ended returns why a caller's context is over, nil if it is not.
func ended(caller context.Context) error {
	err := caller.Err()
	if cause := context.Cause(caller); cause != err {
		return errors.Join(err, cause)
	}
	return err
}

// tooManyWaiters is the error of a call beyond the limit of [WithMaxWaiters].
func tooManyWaiters(limit int) error {
	return fmt.Errorf("%w: %d of this client do, see WithMaxWaiters", ErrTooManyWaiters, limit)
}
