package lockscript

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// Strategy is what a strategy does on its servers: one grant, one release, one renewal at a time. Waiting, retries,
// renewal in time and the notice of losses are the same for all strategies, and lie in other packages.
//
// Each operation is idempotent per hold: it may be sent again after an unknown outcome. Its errors are those of package
// transport, or have an Outcome of their own.
type Strategy interface {
	// Acquire requests the hold once.
	Acquire(ctx context.Context, h *Hold) (Result, error)
	// Release ends the hold. It returns false if the hold was not there. A request of this hold that arrives later is not
	// granted.
	Release(ctx context.Context, h *Hold, what ReleaseReason) (bool, error)
	// Renew gives the hold a TTL again. It returns false if the hold is not there any more.
	Renew(ctx context.Context, h *Hold, ttl time.Duration) (bool, error)
	// RenewAll renews many holds at once, without waiting.
	keepalive.Sender[Hold]
	// Raise gives the hold a greater token, which all later grants exceed. It returns false if the hold is not there any
	// more.
	Raise(ctx context.Context, h *Hold, token int64) (bool, error)
	// Subscribe subscribes to releases. The caller must call Close.
	Subscribe(k Keys) Subscription
	// SubscribeIfActive is Subscribe for a caller that has not asked Redis yet. It returns nil if that needs a command.
	SubscribeIfActive(k Keys) Subscription
	// Bar makes Redis refuse requests of a granted hold that arrive later, see Hold.Unanswered. It does not wait.
	Bar(h *Hold)
	// Pending returns the queue in which unconfirmed releases are sent again. It is nil if each of several servers has its
	// own queue.
	Pending(h *Hold) *transport.Pending
	// DeploymentID returns the name of the place where the lock lies: the same for all clients that reach it, whatever
	// their connection, and another one on any other server or database.
	DeploymentID(ctx context.Context, k Keys) (string, error)
}

// ReleaseReason is the state of a hold that is released.
type ReleaseReason int

const (
	HeldByCaller ReleaseReason = iota // a caller has, or had, a lease of it
	NeverHeld                         // no caller got it: WithMinHold does not count, and requests for it may still arrive
	OnlyQueued                        // it was in the queue in Redis, and no request for it is in flight
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

// Renewal is one lease's turn to be renewed.
type Renewal = keepalive.Renewal[Hold]
