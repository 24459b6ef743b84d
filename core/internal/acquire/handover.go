package acquire

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
)

// A grant may serve several callers of this process, one after the other: a holder that unlocks hands the hold over to the
// first waiter of the list, and Redis keeps it under the name of the first holder. So a busy lock needs one round trip for many
// callers.
//
//  1. The first of a list that others wait behind requests several tokens. Redis grants the lock, and reserves them.
//  2. While the chain runs, the next waiter does not ask Redis.
//  3. Each holder unlocks, and HandOver gives the hold to the next waiter, with the next token.
//  4. The chain ends: maxChain has passed, the tokens are used, a holder may not hand over, or a waiter may not take over. The
//     first of the list asks Redis, which registers it among the waiting clients, and the next release goes to Redis, which wakes
//     the next client.

const (
	// maxChain bounds how long after the grant a hold is handed over. Then other processes get their turn.
	maxChain = 20 * time.Millisecond
	// maxChainTokens bounds how many callers have the hold of one grant.
	maxChainTokens = 1024
	// chainPause is how long the first waiter leaves the lock to a client that was woken by the end of a chain, and shortPause the
	// same if none has registered: a client of Redisson, which never does, may wait.
	chainPause = 2 * time.Millisecond
	shortPause = 500 * time.Microsecond
)

// Chain is one grant that the callers of a list hand over to each other. Its fields do not change unless their comment says
// otherwise.
type Chain struct {
	FirstToken int64 // which the hold has in Redis

	key        string            // of the list
	sentAt     keepalive.Instant // of the request that was granted
	until      keepalive.Instant // no hand-over at or after it
	othersWait bool              // true if other clients waited at the grant

	// Guarded by the mutex of Lists.
	token int64       // of the last grant
	left  int         // tokens that are not used
	timer *time.Timer // ends the chain; nil before the first holder has left the list
}

// newChain returns the chain of a grant with reserved tokens, nil if it may not be handed over. A hold with an unanswered request
// never is, because its release must be remembered by Redis.
//
// The chain ends before a renewal of the hold is due, so it is the same lease for all its holders: the validity of each one
// counts from the request that was granted.
func (a *Acquisition) newChain(g script.Grant) *Chain {
	if a.Hold.Unanswered > 0 {
		return nil
	}
	return &Chain{
		FirstToken: g.Token, token: g.Token, left: g.Reserved, othersWait: g.OthersWait, key: a.localWaiter.Key, sentAt: a.sentAt,
		until: min(a.Env.Now().Add(maxChain), a.sentAt.Add(a.Hold.TTL/4)),
	}
}

// BeginsWith returns true if Redis has this token of the chain: that of its first holder. A nil chain has none.
func (c *Chain) BeginsWith(token int64) bool { return c != nil && c.FirstToken == token }

// HandOver hands the hold of a lease that has just ended over to the first waiter of the chain's list. It returns false, and does
// nothing, if there is none that may take it, or if the chain is over. If it returns true, h must not be changed any more. The
// caller must make sure that nobody uses the lease, that its hold is in Redis as it was granted, and that no request of the hold
// can follow but those of the next holder.
func (e *Environment) HandOver(c *Chain, h *script.Hold) bool {
	q := e.Lists
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.byLock[c.key]
	if l == nil || l.chain != c || c.left == 0 || e.Now() >= c.until || e.Operations.IsClosed() {
		return false
	}
	t := l.first
	if !t.takesOver || t.ttl != h.TTL {
		return false
	}
	c.token++
	c.left--
	t.taken, t.chain = h, c
	t.removeLocked()
	t.wakeFirstLocked()
	close(t.ready)
	return true
}

// ChainReleased ends a chain whose hold was released in Redis. The first waiter leaves the lock to others for a moment, because
// otherwise it would nearly always ask before a client that hears of the release by a message.
func (q *Lists) ChainReleased(c *Chain) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c.left = 0
	switch l := q.byLock[c.key]; {
	case l == nil || l.chain != c: // nobody waits for a hand-over of this chain
	case c.othersWait:
		c.timer.Reset(chainPause)
	default:
		c.timer.Reset(shortPause)
	}
}

// endChain makes the first waiter ask Redis. It does nothing if the chain has ended.
func (q *Lists) endChain(c *Chain) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.byLock[c.key]
	if l == nil || l.chain != c {
		return
	}
	l.chain = nil
	c.timer.Stop()
	close(l.first.ready)
}

// leaveToChain is leave for the first of a list that has got the grant of a chain. Those behind it wait for hand-overs, until the
// chain ends.
//
// If other clients wait, the first asks later than the last hand-over, because its request must not meet the release of the last
// holder, and take the lock before the client that this has woken.
func (t *waiter) leaveToChain(c *Chain, now keepalive.Clock) {
	q := t.lists // not t, whose memory is used again, in the timer
	q.mu.Lock()
	defer q.mu.Unlock()
	t.list.chain = c
	ends := c.until.Sub(now())
	if c.othersWait {
		ends += maxChain
	}
	c.timer = time.AfterFunc(ends, func() { q.endChain(c) })
	t.removeLocked()
	t.wakeFirstLocked()
}

// takeOver accepts the hold that another caller of this process has handed over. It returns errAskAlone if the caller refuses the
// grant as too late.
//
// Redis was not asked, and may have lost the hold, or an operator may have taken it. So a lease that outlives the chain is renewed at
// its end, which shows that.
func (a *Acquisition) takeOver(ctx context.Context, t *waiter) error {
	a.Hold, a.Chain, a.Answered = *t.taken, t.chain, true
	a.sentAt = t.chain.sentAt
	if err := a.accept(ctx, script.Grant{Token: t.chain.token, RenewBy: t.chain.until}); err != nil {
		a.Env.Lists.ChainReleased(t.chain) // replaceHold has released it
		return errAskAlone
	}
	return nil
}
