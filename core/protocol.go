package core

import (
	"context"
	"sync/atomic"
	"time"
)

// protocol is what a strategy does on its servers: one grant, one release, one renewal at a time. Waiting,
// retrying, renewing in time and telling of losses is the same for all strategies and lives elsewhere.
//
// Each operation is idempotent per hold: it may be sent again after an unknown outcome.
type protocol interface {
	// acquire asks once for the hold.
	acquire(ctx context.Context, h *hold) (answer, error)
	// release ends the hold and reports whether it was there. It also makes sure that an acquire of this hold
	// which is still on its way will not be granted.
	release(ctx context.Context, h *hold, what usage) (bool, error)
	// renew gives the hold its ttl again and reports whether it is still there.
	renew(ctx context.Context, h *hold, ttl time.Duration) (bool, error)
	// renewAll does so for many holds at once, without waiting.
	renewAll(renewals []*renewal)
	// raise gives the hold a greater token, for it and for all later grants, and reports whether it is still there.
	raise(ctx context.Context, h *hold, token int64) (bool, error)
	// subscribe subscribes to releases.
	subscribe(k keys) releaseSubscription
	// subscribeIfActive is subscribe for a caller that has not asked Redis yet. It returns nil if that needs a command.
	subscribeIfActive(k keys) releaseSubscription
	// line is where those who wait stand in a line that Redis keeps. If it is nil, whoever asks first after a release
	// gets the lock.
	line() *inLine
	// bar makes requests of a granted hold be refused that arrive later, see hold.unanswered. It does not wait for that.
	bar(h *hold)
	// pending is where a release that was not confirmed is sent again. It is nil if each of several servers has its own.
	pending(h *hold) *pending
	// location names the place where the lock lies, see location.go.
	location(ctx context.Context, k keys) (string, error)
}

// hold is one entry into a lock: what Lock asks for, and what a Lease has.
type hold struct {
	name       string
	keys       keys
	id         string   // never used for another hold; set by call or rename only
	lockConfig          // its owner is never empty once it has an id
	parent     *holding // the lease by which its owner is in; nil for a new owner, and one that WithOwner has named

	released   string // where its end is remembered
	boxed      boxed
	releaseCtx detachedContext // of its release
	// unanswered counts its requests whose outcome is not known: each may arrive yet, whatever a later one has come to.
	unanswered int

	waits           bool  // in line, if it is not granted at once
	registersClient bool  // register the client as waiting if the lock is busy, see wake_one.go
	woken           bool  // the client was woken
	number          int64 // in line; 0 before it stood in one
	shares          bool  // others may have the lock too

	// Of a Redlock.
	defeats int           // in ballots, since one was not split
	trip    time.Duration // that the servers' answers took

	record *recordConfig // of a Once
}

// kind is what errors call it.
func (h *hold) kind() string {
	if h.record != nil {
		return "once"
	}
	return "lock"
}

// usage tells what became of a hold that is released.
type usage int

const (
	used      usage = iota
	neverUsed       // by anybody: WithMinHold does not count, and requests for it may still arrive
	lined           // it was in line, and no request for it is on its way
)

// answer is what Redis says to an acquire.
type answer struct {
	granted bool
	token   int64
	sentAt  instant // of the request that was granted, if others went before it
	settled bool    // who has the lock was in before, with a token on which the servers of a Redlock have agreed
	entered bool    // it was granted because the hold's parent is in
	gone    bool    // the hold was given up before
	refused error   // for good, as no waiting would change
	attempt int     // of a Once
	began   time.Time
	standing
}

// standing is how somebody who was not granted a lock stands.
type standing struct {
	left   time.Duration // of the present holder's lease; negative: it has no end
	before int           // in line
	last   int64         // token granted to anybody; 0 if unknown
	plain  bool          // the holder announces its release to everybody, not to the first in line
}

// renewal is one lease's turn to be renewed.
type renewal struct {
	hold  *hold
	token int64
	// left is for how long the hold has to be in Redis at least, whether this renewal succeeds or not.
	left time.Duration
	// sent is set when the request leaves; until then it waits for its turn.
	sent atomic.Bool
	// done takes the outcome, and when the request was sent. It may come late, or never. Of a hold that is not there err is
	// the cause of the loss, as far as it is known.
	done func(sentAt instant, held bool, err error)
}
