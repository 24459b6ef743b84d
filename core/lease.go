package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/acquire"
	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// Lease is one successful acquisition of a lock. The client renews it until you unlock or abandon it, unless
// [WithFixedTTL] or [WithMaxHold] say otherwise. If no renewal succeeds in time, the lease ends, and its context with
// it.
//
// Its methods may be called from several goroutines at once. A nil Lease behaves like one that has ended: a caller that
// forgets to look at the error of Lock gets [ErrNotHeld] and an ended context, and no panic.
type Lease struct {
	handle
	engine   *engine
	strategy script.Strategy
	hold     script.Hold
	token    int64
	entry    keepalive.Entry[script.Hold] // of its renewals

	base leaseContext // what its context is made of
	end  keepalive.End

	chain *acquire.Chain // by which other callers of this client may get the hold; nil if none may
	// kept is true if the hold must not be handed over: a re-entry may be on its way to Redis, or an extension, or another process may
	// know the owner. It is set before the lease is found to be live, and read after it has ended.
	kept atomic.Bool

	leavesLosses bool // see lockConfig
	raised       bool // Redis has another token of the hold than granted, see raise; not changed after the caller has the lease

	multi *multiLease // nil if the lease is of a single lock; otherwise there is no protocol
}

// newLease makes a lease of a grant, with the options of the call. Its context has the values of ctx but not its end: ctx bounded
// the waiting, not the holding. outer is the lease that it has entered, nil if there is none.
func (e *engine) newLease(ctx context.Context, p script.Strategy, h script.Hold, g script.Grant, config *lockConfig, outer *Lease) (*Lease, error) {
	l := &Lease{engine: e, strategy: p, hold: h, token: g.Token, leavesLosses: config.leavesLosses}
	l.handle = seal.HandleOf(keptLease{l})
	l.hold.ParentID = "" // it was for the requests
	terms := keepalive.Terms{
		SentAt: g.SentAt, Granted: g.TTL, TTL: h.TTL, Fixed: config.fixed, MaxHold: config.maxHold, Token: g.Token,
		RenewBy: g.RenewBy, WarnAfter: e.holdWarning,
	}
	if config.leavesLosses {
		terms.WarnAfter = 0 // leaders lead for a long time
	}
	if outer != nil {
		l.token = max(l.token, outer.token) // Redis has the token of the first holder if the outer hold was handed over
		terms.EndAt = outer.entry.EndAt()
	}
	l.base = leaseContext{holding{lease: l, token: l.token, outer: holdingFrom(ctx)}, ctx}
	if !e.renewer.Add(&l.entry, keptLease{l}, terms) {
		return nil, acquire.ErrTooLate
	}
	if outer != nil {
		l.end.Follow(&outer.end, l.outerEnded)
	}
	return l, nil
}

// Name returns the name of the lock.
func (l *Lease) Name() string {
	if l == nil {
		return ""
	}
	return l.hold.Name
}

// Owner returns the owner as it is stored in Redis: the same for all leases of one chain of re-entries, and for leases that were
// handed over from one to the next. For a [Multi] it is the owner of the member that was locked first. A lease whose Owner was called
// is not handed over to another caller of this client, see [Client.Mutex].
func (l *Lease) Owner() string {
	if l == nil {
		return ""
	}
	l.kept.Store(true)
	return l.hold.Owner
}

// Token returns the fencing token: greater than the token of every earlier grant of this name, the same on re-entry, never
// 0. After a loss it may be smaller for some milliseconds, see [Client.Mutex]. The token of a [Multi] is greater than the tokens of all earlier grants of its members. See [TokenFrom] for its use.
func (l *Lease) Token() int64 {
	if l == nil {
		return 0
	}
	return l.token
}

// Context returns a context that carries the owner and ends with the lease. Locking the same name with it enters the
// lock again instead of waiting. Its cause is [ErrLeaseLost], [ErrNotHeld] after Unlock, or [ErrClosed]. It has the
// values of the context given to Lock, but not its deadline. Its Err is nil only before [Lease.ValidUntil]: it compares with the
// clock, and ends the context if the process was paused, or the host suspended, for so long that no timer could do it in time. After a
// suspend of the host, that takes a millisecond.
//
// Goroutines that share this context share the ownership: this lock does not exclude them from each other. Locks of
// other names do, even if they are taken with this context. Once the lease has ended, this lock does so too. That
// applies even to goroutines that have the context without its end ([context.WithoutCancel]).
func (l *Lease) Context() context.Context {
	if l == nil {
		return noLease
	}
	return l.end.Context(&l.base, keptLease{l})
}

// noLease is the context of a nil lease, or attempt, or leadership.
var noLease = func() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errNoLease)
	return ctx
}()

var errNoLease = errorf("%w: nothing was acquired: look at the error first", ErrNotHeld)

// EndIfOver implements [keepalive.Expirer]: it ends the lease if it is over by the clock, before the renewer finds that
// out. Hooks and logger are called by a goroutine of the client.
func (l keptLease) EndIfOver() {
	if l.multi != nil {
		l.multi.endIfOver()
		return
	}
	if cause := l.engine.renewer.RemoveIfOver(&l.entry); cause != nil {
		cause := lossError(cause)
		l.end.Set(cause)
		l.engine.background(func(context.Context) { l.engine.lost(l.Lease, cause) })
	}
}

// Done is closed when the lease ends, for whatever reason.
func (l *Lease) Done() <-chan struct{} { return l.Context().Done() }

// ValidUntil returns the time until which the lease is certain. It is never later than the expiry in Redis, and moves
// forward with every renewal. Compare the result at once: a value kept over a suspend of the host is wrong.
func (l *Lease) ValidUntil() time.Time {
	if l == nil {
		return time.Time{}
	}
	if l.multi != nil {
		return l.multi.validUntil()
	}
	now := time.Now() // first: if the process is stopped before it reads the other clock, the result is too early
	return now.Add(l.engine.renewer.ValidUntil(&l.entry).Sub(l.engine.now()))
}

// Extend makes Redis keep the lease for at least ttl from now. It never shortens the lease. Use it to extend a lease
// with [WithFixedTTL]. With [WithMaxHold] the lease lasts for one TTL after that limit at most, however long ttl is.
//
// A ttl beyond the limits of [WithTTL], or longer than a [WithRestartDelay], is [ErrInvalidOption]. Extend returns
// [ErrNotHeld] if the lease had already ended. Any other error leaves the lease unchanged, even
// [ErrNotReplicated], if fewer replicas acknowledged than [WithReplicaAck] asks for.
func (l *Lease) Extend(ctx context.Context, ttl time.Duration) error {
	if l == nil {
		return errNoLease
	}
	if err := l.checkExtend(ttl); err != nil {
		return err
	}
	l.kept.Store(true)
	if l.end.Cause() != nil {
		return l.notHeld()
	}
	if l.multi != nil {
		return l.multi.extend(ctx, ttl)
	}
	var sentAt keepalive.Instant
	var held bool
	err := transport.Retry(ctx, 0, worthExtending, func() (err error) {
		sentAt = l.engine.now()
		ttl = l.engine.renewer.WithinMaxHold(&l.entry, ttl)
		held, err = l.strategy.Renew(ctx, &l.hold, ttl)
		return err
	})
	if err != nil {
		return errorf("holdfast: extend lock %q: %w", l.hold.Name, failure(ctx, l.hold.Keys.Lock, err))
	}
	if !held && l.engine.renewer.Remove(&l.entry) {
		l.engine.lost(l, errTaken)
	}
	if !held || !l.engine.renewer.Extended(&l.entry, sentAt, ttl) {
		return l.notHeld()
	}
	return nil
}

// checkExtend returns [ErrInvalidOption] if the lease must not last for ttl. For a joint lease all members are checked
// before the first is extended.
func (l *Lease) checkExtend(ttl time.Duration) error {
	if l.multi != nil {
		for _, m := range l.multi.members {
			if err := m.checkExtend(ttl); err != nil {
				return err
			}
		}
		return nil
	}
	var check lockConfig
	check.checkTTL("Extend", ttl)
	return cmp.Or(check.err, checkRestartDelay(l.engine.lock.restartDelay, ttl))
}

// worthExtending reports whether to ask again: not if replicas did not acknowledge it, which have had their time.
func worthExtending(err error) bool {
	return transport.Transient(err) && !transport.Unacknowledged(err)
}

// Unlock ends the lease. It works although ctx was cancelled. A limit of some seconds bounds it, and ctx does only if
// it ends while Unlock waits.
//
// Unlock returns [ErrNotHeld] if the lease had already ended. Then another owner may have held the lock before the
// work was done. Unlock does not affect a later holder. Any other error means that Redis did not confirm the release.
// The client then retries in the background, and Redis frees the lock after the TTL at the latest. A Mutex that is handed over to
// another caller of the client is not released, see [Client.Mutex].
func (l *Lease) Unlock(ctx context.Context) error {
	if l == nil {
		return errNoLease
	}
	return l.release(ctx, script.HeldByCaller)
}

func (l *Lease) release(ctx context.Context, what script.ReleaseReason) error {
	if l.multi != nil {
		return l.multi.release(ctx, what)
	}
	if l.engine.operations.StartInternal() {
		defer l.engine.operations.Finish()
	}
	live := l.engine.renewer.Remove(&l.entry) // from here on nothing renews it, whatever the hooks do
	if live {
		l.end.Set(ErrNotHeld)
	}
	if l.engine.hooks.ReleaseStart != nil || l.engine.hooks.ReleaseEnd != nil {
		return l.unlockWithHooks(ctx, live, what)
	}
	return l.unlock(ctx, live, what)
}

func (l *Lease) unlock(ctx context.Context, live bool, what script.ReleaseReason) error {
	if !live {
		if l.leftToExpire(l.end.Cause()) {
			l.engine.acquiring.ReleaseInBackground(l.strategy, l.expiring(), script.HeldByCaller) // the holder has stopped before the TTL is over
		}
		return l.notHeld()
	}
	if l.chain != nil {
		if what == script.HeldByCaller && !l.kept.Load() && l.engine.acquiring.HandOver(l.chain, &l.hold) {
			return nil
		}
		defer l.engine.acquiring.Lists.ChainReleased(l.chain)
	}
	h := l.outstanding()
	if l.engine.acquiring.OneServer { // a Redlock needs no ValidUntil, and may copy the hold at this moment to repair it
		h.ValidUntil, h.ExpiresAt = l.engine.renewer.ValidUntil(&l.entry), l.expiresAt()
	}
	held, err := l.engine.acquiring.Release(ctx, l.strategy, h, what)
	switch {
	case err != nil:
		return errorf("holdfast: release of lock %q not confirmed: %w", l.hold.Name,
			failure(ctx, l.hold.Keys.Lock, err))
	case !held:
		l.engine.report(l, errTaken)
		return l.notHeld()
	}
	return nil
}

// Abandon stops renewal without unlocking. The lease's context ends with [ErrLeaseLost]. Redis keeps the lock until
// the TTL expires, or for one more TTL if a renewal is in flight. Use Abandon for work that ignores cancellation:
// others stay excluded while it may still run, but not forever. Leases that have entered the lock by the context of this
// one are abandoned too, because their renewals would keep the lock. Their contexts end soon after Abandon returns. Leases of
// [WithOwner] are not abandoned.
//
// A later Unlock, for work that has stopped after all, frees the lock early and returns [ErrNotHeld]. [Client.Close]
// does not free an abandoned lock.
//
// Abandon does no I/O. For a [Multi] it abandons all members. It does not change a lease that has ended.
func (l *Lease) Abandon() {
	if l == nil {
		return
	}
	if l.multi != nil {
		l.multi.abandon()
		return
	}
	l.leaveToExpire(errAbandoned)
}

// leaveToExpire ends a lease without a release, unless it has ended.
func (l *Lease) leaveToExpire(cause error) {
	if l.engine.renewer.Remove(&l.entry) {
		l.keepForTTL()
		l.engine.lost(l, cause)
	}
}

// outerEnded ends the lease if the one that it has entered has ended with that cause, and is left to expire. Otherwise the
// renewals of this one would keep the lock. It waits for no hooks, because the renewer of the outer lease may call it.
func (l *Lease) outerEnded(cause error) {
	if leftToExpire(cause) {
		l.engine.background(func(context.Context) { l.leaveToExpire(cause) })
	}
}

// keepForTTL makes Redis keep the hold of a lease that has just ended for its TTL, in the background. It does so only if Redis
// has granted the hold for less, as to a waiter in a queue. If the hold was released meanwhile, Redis does nothing.
func (l *Lease) keepForTTL() {
	if !l.engine.renewer.Provisional(&l.entry) {
		return
	}
	h := l.hold // a copy, because a release uses the other
	l.engine.background(func(ctx context.Context) {
		_ = transport.RetryUntilAnswered(ctx, func(ctx context.Context) error {
			_, err := l.strategy.Renew(ctx, &h, h.TTL)
			return err
		})
	})
}

// leftToExpire reports whether the lease, if it ended for this cause, is left in Redis for the rest of its TTL.
func (l *Lease) leftToExpire(cause error) bool {
	return leftToExpire(cause) || l.leavesLosses && errors.Is(cause, ErrLeaseLost)
}

func (l *Lease) notHeld() error {
	return fmt.Errorf("%w: %q", ErrNotHeld, l.hold.Name)
}

// drift is taken off every TTL: for the millisecond to which Redis rounds, and for clocks that do not run at
// the same rate (NTP slews by up to 500 ppm).
func drift(ttl time.Duration) time.Duration { return 2*time.Millisecond + ttl/1000 }

// keptLease is a [Lease] as its renewer, its contexts and adapters see it. It is a separate type so that its methods
// are not part of the API.
type keptLease struct{ *Lease }

func (l keptLease) Hold() *script.Hold                    { return &l.hold }
func (l keptLease) Sender() keepalive.Sender[script.Hold] { return l.strategy }
func (l keptLease) End(cause error)                       { l.end.Set(lossError(cause)) }
func (l keptLease) Lost(cause error)                      { l.engine.lost(l.Lease, lossError(cause)) }
func (l keptLease) Renewed(answer keepalive.Answer)       { l.engine.renewed(l.Lease, answer) }

// lossError returns the [ErrLeaseLost] of a cause.
func lossError(cause error) error {
	var c keepalive.Cause
	errors.As(cause, &c)
	return cmp.Or(map[keepalive.Cause]error{
		keepalive.Expired: errExpired, keepalive.FixedTTL: errRanOut, keepalive.HeldTooLong: errHeldTooLong,
		keepalive.Gone: errGone, keepalive.Replaced: errReplaced, keepalive.Forced: errForced,
	}[c], errTaken)
}

// expiring returns a copy of the lease's hold that says when it expires by itself, for a release in the background.
func (l *Lease) expiring() *script.Hold {
	h := *l.outstanding()
	h.ExpiresAt = l.expiresAt()
	return &h
}

// expiresAt returns when Redis lets the hold expire by itself, as far as Redis has confirmed.
func (l *Lease) expiresAt() keepalive.Instant {
	return max(l.engine.renewer.ExpiresAt(&l.entry), l.entry.Granted.Add(l.hold.MinHold))
}

// outstanding returns the lease's hold as a server may still have it: for longer than its TTL, if it was extended.
func (l *Lease) outstanding() *script.Hold {
	left := l.engine.renewer.Outstanding(&l.entry)
	if left == l.hold.TTL && !l.raised {
		return &l.hold
	}
	h := l.hold
	h.TTL, h.Compact = left, h.Compact && !l.raised
	return &h
}

// holding is what the context of a lease carries: which owner holds which lock with which token, and the leases within
// whose contexts it was taken.
type holding struct {
	lease *Lease
	whole *Lease // the joint lease of which it is a part; nil if there is none
	token int64
	outer *holding
}

// Ended implements acquire.Parent: it reports whether the lease has ended, or the joint lease of which it is a part.
func (h *holding) Ended() bool {
	return h.lease.end.Cause() != nil || h.whole != nil && h.whole.end.Cause() != nil
}

// entered returns the lease that a grant with this token has entered, nil if there is none. It compares tokens because the
// lease of another client may be stored in another Redis, where the grant has a different token.
func (h *holding) entered(e *engine, token int64) *Lease {
	if h == nil || !sameRedis(h.lease.engine, e) && token != h.token && token != h.lease.token && !h.lease.chain.BeginsWith(token) {
		return nil
	}
	return h.lease
}

type holdingKey struct{}

// warnOfOwner warns of an owner for all locks of a client. It is allowed because the processes of one
// piece of work may have clients that no other work uses.
func (e *engine) warnOfOwner() {
	if e.lock.owner != "" {
		e.logger.Warn("holdfast: WithOwner is set for a whole client: no two calls of that owner exclude each other")
	}
}

// leaseContext is the context of a lease without its end: what it carries, and the values of the caller's. It is a part of the
// lease, because each would otherwise allocate.
type leaseContext struct {
	holding
	caller context.Context
}

func (*leaseContext) Deadline() (deadline time.Time, ok bool) { return }
func (*leaseContext) Done() <-chan struct{}                   { return nil }
func (*leaseContext) Err() error                              { return nil }

func (b *leaseContext) Value(key any) any {
	if key == (holdingKey{}) {
		return &b.holding
	}
	return b.caller.Value(key)
}

// withHolding adds a lease to what ctx carries, and the joint lease of which it is a part, if there is one.
func withHolding(ctx context.Context, l, whole *Lease, token int64) context.Context {
	return context.WithValue(ctx, holdingKey{}, &holding{l, whole, token, holdingFrom(ctx)})
}

// holdingFrom returns the innermost lease that ctx carries, nil if there is none.
func holdingFrom(ctx context.Context) *holding {
	h, _ := ctx.Value(holdingKey{}).(*holding)
	return h
}

// of returns the innermost lease of that lock within whose context another was taken, nil if there is none. A lease that
// is over does not count: several goroutines may still have its context, without its end, and nothing would keep them
// apart. One of the same Redis comes before one of another client, which may reach the same Redis by another connection,
// or not.
func (h *holding) of(e *engine, lock string) *holding {
	var other *holding
	for ; h != nil; h = h.outer {
		if h.lease.hold.Keys.Lock != lock {
			continue
		}
		h.lease.kept.Store(true) // before it is found to be live, see Lease.kept
		switch {
		case h.Ended():
		case sameRedis(h.lease.engine, e):
			return h
		case other == nil:
			other = h
		}
	}
	return other
}

// TokenFrom returns the fencing token of the innermost lease whose context ctx is or descends from. It returns false
// if there is none. Send the token with every write to the resource that the lock protects, and let the resource
// refuse a token smaller than one it has seen. That stops a holder which was paused while its lease expired
// (Kleppmann, "How to do distributed locking", 2016).
//
// If you hold one lock inside another, TokenFrom returns the token of the inner one. Read the outer token before.
func TokenFrom(ctx context.Context) (int64, bool) {
	h := holdingFrom(ctx)
	if h == nil {
		h = holdingFrom(seal.ContextOf(ctx))
	}
	if h != nil {
		return h.token, true
	}
	return 0, false
}
