package core

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Lease is one successful acquisition of a lock. It is renewed until it is unlocked or abandoned (unless [WithFixedTTL]
// or [WithMaxHold] say otherwise) and ends by itself, with its context, when that does not succeed in time.
//
// Its methods may be called from several goroutines at once.
type Lease struct {
	keeper   *keeper
	protocol protocol
	hold     hold
	token    int64
	granted  instant

	bare   bare // what its context is made of
	ending ending

	joint *joint // nil if the lease is of a single lock; otherwise there is no protocol

	// Guarded by the renewer's mutex.
	term    term
	index   int      // in the renewer's heap; negative when the lease is over
	renewal *renewal // the last one, nil before the first
}

// grant is what Redis gave: a token, and a time that began after sentAt.
type grant struct {
	token  int64
	sentAt instant
	ttl    time.Duration
}

// newLease makes a lease of a grant. Its context has the values of ctx but
// not its end: ctx bounded the waiting, not the holding.
func (k *keeper) newLease(ctx context.Context, p protocol, h hold, g grant) (*Lease, error) {
	l := &Lease{keeper: k, protocol: p, hold: h, token: g.token, index: -1}
	l.hold.parent = nil // it was for the requests
	l.bare = bare{holding{lease: l, token: l.token, outer: holdingFrom(ctx)}, ctx}
	if err := k.renewer.add(l, g.sentAt, g.ttl); err != nil {
		return nil, err
	}
	return l, nil
}

// Name returns the name of the lock.
func (l *Lease) Name() string { return l.hold.name }

// Owner returns the owner as Redis knows it: the same for all leases of one chain of re-entries. For a [Multi] it is
// that of the member that was locked first.
func (l *Lease) Owner() string { return l.hold.owner }

// Token returns the fencing token: greater than that of every earlier grant of this name, the same on
// re-entry, never 0. That of a [Multi] is greater than those of all its members' earlier grants. See [TokenFrom] for
// its use.
func (l *Lease) Token() int64 { return l.token }

// Context returns a context that carries the owner, so that locking the same name with it enters again
// instead of waiting, and that ends with the lease. Its cause is then [ErrLeaseLost], [ErrNotHeld] after
// Unlock, or [ErrClosed]. It has the values of the context given to Lock, but not its deadline.
//
// Goroutines that share this context share the ownership: this lock does not keep them apart. Locks of other names
// do, also when they are taken with this context. Once the lease is over, this lock does so too, even for goroutines that
// have the context without its end ([context.WithoutCancel]).
func (l *Lease) Context() context.Context { return l.ending.context(&l.bare) }

// Done is closed when the lease ends, for whatever reason.
func (l *Lease) Done() <-chan struct{} { return l.Context().Done() }

// ValidUntil returns the time until which the lease is certain, never later than its expiry in Redis. It moves
// forward with every renewal. Compare the result at once: a value kept over a suspend of the host is wrong.
func (l *Lease) ValidUntil() time.Time {
	if l.joint != nil {
		return l.joint.validUntil()
	}
	now := time.Now() // first: if the process is stopped before it reads the other clock, the result is too early
	return now.Add(l.keeper.renewer.validUntil(l).sub(l.keeper.now()))
}

// Extend makes Redis keep the lease for at least ttl from now; it never shortens it. A lease with [WithFixedTTL]
// is prolonged this way. With [WithMaxHold] it is kept for one TTL after that at most, however long ttl is.
//
// Returns [ErrNotHeld] if the lease is over, which it then was before. Any other error leaves the lease as it was,
// also [ErrNotReplicated] if [WithReplicaAck] asks for more replicas than acknowledged it.
func (l *Lease) Extend(ctx context.Context, ttl time.Duration) error {
	var check lockConfig
	if check.checkTTL("Extend", ttl); check.err != nil {
		return check.err
	}
	if l.ending.cause() != nil {
		return l.notHeld()
	}
	if l.joint != nil {
		return l.joint.extend(ctx, ttl)
	}
	var sentAt instant
	var held bool
	err := persist(ctx, 0, worthExtending, func() (err error) {
		sentAt = l.keeper.now()
		ttl = l.keeper.renewer.withinMaxHold(l, ttl)
		held, err = l.protocol.renew(ctx, &l.hold, ttl)
		return err
	})
	if err != nil {
		return errorf("holdfast: extend lock %q: %w", l.hold.name, failure(ctx, l.hold.keys.lock, err))
	}
	if !held && l.keeper.renewer.remove(l) {
		l.keeper.lost(l, errTaken)
	}
	if !held || !l.keeper.renewer.extended(l, sentAt, ttl) {
		return l.notHeld()
	}
	return nil
}

// worthExtending reports whether to ask again: not if replicas did not acknowledge it, which have had their time.
func worthExtending(err error) bool { return transient(err) && !errors.Is(err, ErrNotReplicated) }

// Unlock ends the lease. It works although ctx was cancelled: it is bounded by its own few seconds, and by ctx
// only if that ends while Unlock waits. Returns [ErrNotHeld] if the lease was over, because then somebody else
// may have held the lock before the work was done; nothing of a later holder is touched. Any other error means
// that Redis did not confirm the release; it is tried further in the background, and Redis frees the lock
// after the TTL at the latest.
func (l *Lease) Unlock(ctx context.Context) error { return l.release(ctx, used) }

func (l *Lease) release(ctx context.Context, what usage) error {
	if l.joint != nil {
		return l.joint.release(ctx, what)
	}
	if l.keeper.tasks.join() {
		defer l.keeper.tasks.end()
	}
	live := l.keeper.renewer.remove(l) // from here on nothing renews it, whatever the hooks do
	if live {
		l.ending.come(ErrNotHeld)
	}
	hooks, asked := &l.keeper.hooks, false
	defer func() {
		if live && !asked { // the hook panics
			l.keeper.giveUp(l.protocol, l.keeper.renewer.outstanding(l), what)
		}
	}()
	ctx = hooks.releaseStart(ctx, ReleaseStart{Name: l.hold.name, Owner: l.hold.owner, Token: l.token})
	asked = true
	err := l.unlock(ctx, live, what)
	hooks.releaseEnd(ctx, ReleaseEnd{
		Name: l.hold.name, Owner: l.hold.owner, Token: l.token,
		Held: l.keeper.nowFor(hooks.ReleaseEnd != nil).sub(l.granted), Err: err,
	})
	return err
}

func (l *Lease) unlock(ctx context.Context, live bool, what usage) error {
	if !live {
		if runsOut(l.ending.cause()) {
			l.keeper.giveUp(l.protocol, l.keeper.renewer.outstanding(l), used) // the holder has stopped before the TTL is over
		}
		return l.notHeld()
	}
	held, err := l.keeper.release(ctx, l.protocol, l.keeper.renewer.outstanding(l), what)
	switch {
	case err != nil:
		return errorf("holdfast: release of lock %q not confirmed: %w", l.hold.name,
			failure(ctx, l.hold.keys.lock, err))
	case !held:
		l.keeper.report(l, errTaken)
		return l.notHeld()
	}
	return nil
}

// Abandon lets go of the lease without freeing the lock: it is not renewed any more, its context ends with
// [ErrLeaseLost], and Redis keeps it for the rest of its TTL, or for a whole one if a renewal is on its way. It is for
// work that does not stop although it was told to: it may still be at it, so nobody else should come in at once, nor be
// kept out for ever. An Unlock after it frees what is left, for work that has stopped after all, and returns
// [ErrNotHeld]; [Client.Close] frees nothing of it.
//
// It does no I/O. Of a [Multi] it abandons all members. A lease that is over stays as it is.
func (l *Lease) Abandon() {
	if l.joint != nil {
		l.joint.abandon()
		return
	}
	if l.keeper.renewer.remove(l) {
		l.keeper.lost(l, errAbandoned)
	}
}

func (l *Lease) notHeld() error {
	return fmt.Errorf("%w: %q", ErrNotHeld, l.hold.name)
}
