package core

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// protocol is what a strategy does on its servers: one grant, one release, one renewal at a time. Waiting,
// retrying, renewing in time and telling of losses is the same for all strategies and lives elsewhere.
//
// Each operation is idempotent per hold: it may be sent again after an unknown outcome.
type protocol interface {
	// acquire asks once for the hold.
	acquire(ctx context.Context, h *hold) (acquireResult, error)
	// release ends the hold and reports whether it was there. It also makes sure that an acquire of this hold
	// which is still on its way will not be granted.
	release(ctx context.Context, h *hold, what releaseReason) (bool, error)
	// renew gives the hold its ttl again and reports whether it is still there.
	renew(ctx context.Context, h *hold, ttl time.Duration) (bool, error)
	// Sender renews many holds at once, without waiting.
	keepalive.Sender[hold]
	// raise gives the hold a greater token, for it and for all later grants, and reports whether it is still there.
	raise(ctx context.Context, h *hold, token int64) (bool, error)
	// subscribe subscribes to releases.
	subscribe(k keys) releaseSubscription
	// subscribeIfActive is subscribe for a caller that has not asked Redis yet. It returns nil if that needs a command.
	subscribeIfActive(k keys) releaseSubscription
	// queued returns the strategy if its waiters are in a queue in Redis. If it is nil, the first request after a release
	// gets the lock.
	queued() *queuedLock
	// bar makes requests of a granted hold be refused that arrive later, see hold.unanswered. It does not wait for that.
	bar(h *hold)
	// pending is where a release that was not confirmed is sent again. It is nil if each of several servers has its own.
	pending(h *hold) *transport.Pending
	// location names the place where the lock lies, see location.go.
	location(ctx context.Context, k keys) (string, error)
}

// hold is one acquisition of a lock in Redis: what Lock requests, and what a Lease keeps.
type hold struct {
	name       string
	keys       keys
	id         string   // never used for another hold; set by setID or renewID only
	lockConfig          // its owner is never empty once it has an id
	parent     *holding // the lease by which its owner is in; nil for a new owner, and one that WithOwner has named

	released   string // where its end is remembered
	scriptArgs scriptArgs
	releaseCtx transport.DetachedContext // of its release
	// unanswered counts its requests whose outcome is not known: each may arrive yet, whatever a later one has come to.
	unanswered int

	mayQueue        bool  // in the queue in Redis, if it is not granted at once
	registersClient bool  // register the client as waiting if the lock is busy, see internal/pubsub/wake_one.go
	woken           bool  // the client was woken
	queueNumber     int64 // in the queue in Redis; 0 before it was in one
	shares          bool  // others may have the lock too

	// Of a Redlock.
	lostRounds int           // in a row that were split
	rtt        time.Duration // that the servers' answers took

	record *recordConfig // of a Once
}

// do runs a script for the hold, and counts the request if it was repeated.
func (h *hold) do(ctx context.Context, e *transport.Executor, s *transport.Script, keys []string, args ...any) (any, error) {
	c := transport.NewCommand(s, keys, args...)
	c.Ack = h.ack
	err := e.Run(ctx, c)
	h.countRepeated(c)
	if err != nil {
		return nil, err
	}
	return c.Reply, nil
}

// countRepeated counts a repeated request as unanswered. It writes to the hold only then. Why: the requests of a Redlock
// to its servers share one hold and run concurrently, and are never repeated.
func (h *hold) countRepeated(c *transport.Command) {
	if c.Repeated {
		h.unanswered++
	}
}

// kind is what errors call it.
func (h *hold) kind() string {
	if h.record != nil {
		return "once"
	}
	return "lock"
}

// releaseReason is the state of a hold that is released.
type releaseReason int

const (
	heldByCaller releaseReason = iota
	neverHeld                  // no caller got it: WithMinHold does not count, and requests for it may still arrive
	onlyQueued                 // it was in the queue in Redis, and no request for it is in flight
)

// acquireResult is the answer of Redis to a request for a hold.
type acquireResult struct {
	granted        bool
	token          int64
	sentAt         clock.Instant // of the request that was granted, if others went before it
	tokenCommitted bool          // the holder has the lock with a token that a majority of a Redlock has committed
	byParent       bool          // it was granted as a re-entry under the hold's parent
	holdReleased   bool          // the hold was released before the request arrived
	refused        error         // for good, as no waiting would change
	attempt        int           // of a Once
	began          time.Time
	waitState
}

// waitState is what Redis answers to a request that was not granted.
type waitState struct {
	holderTTL  time.Duration // the rest of the holder's lease; negative: it has no end
	ahead      int           // waiters before this one in the queue
	lastToken  int64         // granted to any holder; 0 if unknown
	broadcasts bool          // the holder announces its release by a broadcast, not to the first in the queue
}

// releaseSubscription notifies a waiter of releases. It is one subscriber, or one for each server of a Redlock.
type releaseSubscription interface {
	Notifications() <-chan struct{}
	Confirmed() bool           // reports whether Redis has confirmed the subscription
	StartAsking() (woken bool) // records that the waiter asks Redis now; reports whether it was woken for that, see internal/pubsub/wake_one.go
	Close()
}
