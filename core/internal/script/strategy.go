package script

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// Strategy is what a kind of lock does on its servers: one grant, one release, one renewal at a time. Waiting, retries, timely
// renewal and the notice of losses are the same for all strategies, and lie in other packages.
//
// Each operation is idempotent per hold: it may be sent again after an unknown outcome. Its errors are those of package
// transport, or have an Outcome of their own.
type Strategy interface {
	// Name returns how it holds, in the words of core.Mode: mutex, fair, read, write, semaphore, redlock, election or once.
	Name() string
	// Abilities returns what the strategy can do beyond the other methods.
	Abilities() Abilities
	// Acquire requests the hold once. A nil error does not mean a grant, see Result.
	Acquire(ctx context.Context, h *Hold, want Wanted) (Result, error)
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
	// Bar makes Redis refuse requests of a granted hold that arrive later, see Hold.Unanswered. It does not wait.
	Bar(h *Hold)
	// Pending returns the unconfirmed commands of the server that has the hold. It returns nil if each of several servers
	// has its own.
	Pending(h *Hold) *transport.Pending
	// DeploymentID returns the ID of the deployment that has the lock. It is the same for all clients that reach the lock,
	// whatever their connection. It is another one on any other server or database.
	DeploymentID(ctx context.Context, k Keys) (string, error)
}

// Abilities are what only some strategies can do. A strategy is asked for them once, when a lock is made. A field is the Redis that the
// ability needs, and nil if the strategy does not have the ability.
type Abilities struct {
	Queue   *Instance // waiters have places in a queue there, and are granted the lock by a message
	WakeOne *Instance // a release there wakes one client of those that are registered, see internal/transport/wake_one.go
	Batch   *Instance // one script there grants several locks, see MutexBatch
}

// Wanted is what one request wants if another owner has the lock. The zero value wants only the answer. A strategy ignores what it
// has no means for.
type Wanted struct {
	Place        bool // true if the hold is queued in Redis unless it is granted at once
	Registration bool // true if Redis registers the client as waiting, see internal/transport/wake_one.go
	Woken        bool // true if the client was woken for this request
}

// ReleaseReason is the state of a hold that is released. It decides how long Redis remembers the release.
type ReleaseReason int

// The states of a hold that is released.
const (
	HeldByCaller ReleaseReason = iota // a caller has, or had, a lease of it
	NeverHeld                         // no caller got it: WithMinHold does not count, and requests for it may still arrive
	OnlyQueued                        // it was in the queue in Redis, and no request for it is in flight
)

// Result is the answer of Redis to a request for a hold. Exactly one of these holds: Granted is true, HoldReleased is true,
// Refused is not nil, or another owner has the lock and WaitState tells of it.
type Result struct {
	Granted      bool
	HoldReleased bool     // the hold was released before the request arrived
	Refused      *Refusal // waiting would not change that
	Grant                 // if Granted is true
	WaitState
}

// Grant is what Redis has granted.
type Grant struct {
	Token          int64
	SentAt         keepalive.Instant // of the request that was granted, or of one before; 0 in a Result that took one request
	TTL            time.Duration     // for which Redis keeps the hold; 0 in a Result, where it is that of the hold
	Slot           int               // of the first permit of a semaphore
	TokenCommitted bool              // the owner had the lock before, with a token that a majority of a Redlock has committed
	ByParent       bool              // it was granted as a re-entry under the hold's parent
	Unregistered   bool              // it has taken the client out of the set of clients that wait
	Attempt        int               // number of the attempt of a Once, from 1
	Began          time.Time         // of that attempt, by the server's clock
}

// WaitState is what Redis answers to a request that was not granted.
type WaitState struct {
	Holder     string        // the owner that has the lock, or one of several; "" if unknown
	HolderTTL  time.Duration // until the lock expires without a renewal; negative if it has no expiry
	Ahead      int           // waiters before this one in the queue
	LastToken  int64         // the last token granted to any holder; 0 if unknown
	Broadcasts bool          // true if the holder announces its release by a broadcast, not to the first in the queue
	Committed  bool          // true if a majority of a Redlock has committed the holder's token
}

// Subscription notifies a waiter of releases. It is one subscriber, or one for each server of a Redlock.
type Subscription interface {
	// Notifications returns a channel that receives a value when the waiter should ask Redis. It holds one value.
	Notifications() <-chan struct{}
	// Confirmed returns true if Redis has confirmed the subscription, so that messages can be expected.
	Confirmed() bool
	// StartAsking records that the waiter asks Redis now. It returns true if this client was woken for that, see
	// internal/transport/wake_one.go.
	StartAsking() (woken bool)
	// Close ends the subscription.
	Close()
}

// Renewal is one request to renew one lease, see keepalive.
type Renewal = keepalive.Renewal[Hold]
