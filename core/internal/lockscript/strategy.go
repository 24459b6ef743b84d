package lockscript

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// Strategy is what a strategy does on its servers: one grant, one release, one renewal at a time. Waiting,
// retrying, renewing in time and telling of losses is the same for all strategies and lives elsewhere.
//
// Each operation is idempotent per hold: it may be sent again after an unknown outcome.
type Strategy interface {
	// acquire asks once for the hold.
	Acquire(ctx context.Context, h *Hold) (Result, error)
	// release ends the hold and reports whether it was there. It also makes sure that an acquire of this hold
	// which is still on its way will not be granted.
	Release(ctx context.Context, h *Hold, what ReleaseReason) (bool, error)
	// renew gives the hold its ttl again and reports whether it is still there.
	Renew(ctx context.Context, h *Hold, ttl time.Duration) (bool, error)
	// Sender renews many holds at once, without waiting.
	keepalive.Sender[Hold]
	// raise gives the hold a greater token, for it and for all later grants, and reports whether it is still there.
	Raise(ctx context.Context, h *Hold, token int64) (bool, error)
	// subscribe subscribes to releases.
	Subscribe(k Keys) Subscription
	// subscribeIfActive is subscribe for a caller that has not asked Redis yet. It returns nil if that needs a command.
	SubscribeIfActive(k Keys) Subscription
	// bar makes requests of a granted hold be refused that arrive later, see hold.unanswered. It does not wait for that.
	Bar(h *Hold)
	// pending is where a release that was not confirmed is sent again. It is nil if each of several servers has its own.
	Pending(h *Hold) *transport.Pending
	// location names the place where the lock lies, see location.go.
	DeploymentID(ctx context.Context, k Keys) (string, error)
}

// ReleaseReason is the state of a hold that is released.
type ReleaseReason int

const (
	HeldByCaller ReleaseReason = iota
	NeverHeld                  // no caller got it: WithMinHold does not count, and requests for it may still arrive
	OnlyQueued                 // it was in the queue in Redis, and no request for it is in flight
)

// Result is the answer of Redis to a request for a hold.
type Result struct {
	Granted        bool
	Token          int64
	SentAt         clock.Instant // of the request that was granted, if others went before it
	TokenCommitted bool          // the holder has the lock with a token that a majority of a Redlock has committed
	ByParent       bool          // it was granted as a re-entry under the hold's parent
	HoldReleased   bool          // the hold was released before the request arrived
	Refused        error         // for good, as no waiting would change
	Attempt        int           // of a Once
	Began          time.Time
	WaitState
}

// WaitState is what Redis answers to a request that was not granted.
type WaitState struct {
	HolderTTL  time.Duration // the rest of the holder's lease; negative: it has no end
	Ahead      int           // waiters before this one in the queue
	LastToken  int64         // granted to any holder; 0 if unknown
	Broadcasts bool          // the holder announces its release by a broadcast, not to the first in the queue
}

// Subscription notifies a waiter of releases. It is one subscriber, or one for each server of a Redlock.
type Subscription interface {
	Notifications() <-chan struct{}
	Confirmed() bool           // reports whether Redis has confirmed the subscription
	StartAsking() (woken bool) // records that the waiter asks Redis now; reports whether it was woken for that, see internal/pubsub/wake_one.go
	Close()
}

// RenewalCommand is one lease's turn to be renewed.
type Renewal = keepalive.Renewal[Hold]
