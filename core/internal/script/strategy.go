package script

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// Strategy is what a kind of lock does on its servers: one grant, one release, one renewal at a time. Waiting, retries, timely
// renewal and the notice of losses are the same for all strategies, and are in other packages.
//
// Each operation is idempotent per hold: it may be sent again after an unknown outcome. Its errors come from package
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

// Abilities are what only some strategies can do. A strategy is asked for them once, when a lock is made. A field is
// the Redis that the ability needs, and nil if the strategy does not have the ability.
type Abilities struct {
	Queue   *Instance // waiters have places in a queue there, and are granted the lock by a message
	WakeOne *Instance // a release there wakes one client of those that are registered, see internal/transport/subscriptions.go
	// HandsOver is true if one grant may serve several owners of this process, one after the other, see Wanted.Tokens.
	HandsOver bool
}

// Wanted is what one request wants if another owner has the lock. The zero value wants only the answer. A strategy ignores what it
// has no means for.
type Wanted struct {
	Place        bool // true if the hold is queued in Redis unless it is granted at once
	Registration bool // true if Redis registers the client as waiting, see internal/transport/subscriptions.go
	Woken        bool // true if the client was woken for this request
	Tokens       int  // how many tokens a new grant should have, for this owner and others of this process; 0 for one
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
// Refused is not nil, or another owner has the lock, as WaitState says.
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
	TTL            time.Duration     // for which Redis keeps the hold; 0 in a Result, where the TTL of the hold applies
	RenewBy        keepalive.Instant // when a lease of it is renewed for the first time at the latest; 0 if its TTL decides
	Slot           int               // of the first permit of a semaphore
	Compact        bool              // it was granted in the compact state, see lua/lock/compact_grant.lua
	TokenCommitted bool              // the owner had the lock before, with a token that a majority of a Redlock has committed
	ByParent       bool              // it was granted as a re-entry under the hold's parent
	Unregistered   bool              // it has taken the client out of the set of clients that wait
	Reserved       int               // how many tokens after Token no other grant gets, see Wanted.Tokens
	OthersWait     bool              // other clients waited at the grant; known only if Reserved is not 0
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
	// internal/transport/subscriptions.go.
	StartAsking() (woken bool)
	// Close ends the subscription.
	Close()
}

// Renewal is one request to renew one lease, see keepalive.
type Renewal = keepalive.Renewal[Hold]

// Hold is one acquisition of a lock in Redis: what Lock requests, and what a Lease keeps. Requests and releases write to it, so
// each server of a Redlock gets a copy. Renewals only read it, perhaps during the release of the lease. So a release writes only to
// Args, ReleaseCtx and those fields of the History that no renewal reads.
type Hold struct {
	Name     string // of the lock, for errors
	Keys     Keys
	ID       string // never used for another hold; only IDs.Renew sets it
	Owner    string // not "" once the hold has an ID
	ParentID string // the hold under which the owner re-enters; "" for a new owner, and for one that WithOwner has named
	TTL      time.Duration
	MinHold  time.Duration // for which the lock stays taken at least; 0 for none
	Ack      transport.Ack
	Permits  int    // of a semaphore that the hold takes; 0 for any other lock
	Limit    int    // n of that semaphore: how many permits may be in use; 0 for any other lock
	Terms    *Terms // of the attempt of a Once; nil for a lock

	Released   string // the key that bars requests of the hold, see bar.lua
	Args       Args
	ReleaseCtx transport.DetachedContext // memory for the context of the release

	History
}

// History is what has happened to a hold.
type History struct {
	// Unanswered is how many requests have an unknown outcome. Each of them may still arrive, even if a later one was
	// answered.
	Unanswered int
	// ReleasesUnanswered is how many releases have an unknown outcome. Each of them may have ended the hold.
	ReleasesUnanswered int
	// ValidUntil is the validity of the lease when its release begins; zero if no caller had the hold, and in a Redlock.
	ValidUntil keepalive.Instant
	// ExpiresAt is when Redis lets the hold expire by itself, counted from the last grant or renewal that it has confirmed; zero if
	// that is not known.
	ExpiresAt keepalive.Instant

	QueueNumber int64 // in the queue in Redis; 0 before it was there
	Slot        int   // of the first of its permits, as of the last grant
	// Stored is true if an answer has said that Redis has the hold, granted or in the queue. Then a release that finds the hold
	// does not show whether the unanswered requests have arrived.
	Stored  bool
	Shares  bool   // true if other owners may hold the lock too
	Compact bool   // as of the last grant
	Silent  bool   // true if the release wakes no waiter: another client has the lock by a majority of a Redlock
	Rounds  Rounds // of a Redlock; zero for other locks
}

// Rounds is what a Redlock remembers of its vote rounds for one hold, from one request to the next. Only the goroutine
// that acquires uses it.
type Rounds struct {
	// Lost is 0 before the first round, and 1 after a round that was not won. After a split, or after a majority without a
	// lease, it is one more than before. Unless it is 0, the next round asks the servers one by one.
	Lost int
	RTT  time.Duration // the longest time that an answer took lately, the scale of the pauses
}

// countRepeated counts a repeated request as unanswered.
func (h *Hold) countRepeated(c *transport.Command) {
	if c.Repeated {
		h.Unanswered++
	}
}

// Args are parts of a hold as arguments of scripts. They are kept because each conversion to any costs an allocation.
type Args struct {
	LockArgs
	released, id any
}

// LockArgs are the arguments that all holds of one lock have in common. The zero value has none yet.
type LockArgs struct {
	lock  any
	queue *queueArgs // nil until the first command with the keys of queue_common.lua
}

// NewLockArgs returns the arguments of a lock with these keys. withQueue is true if its strategy has a [Queue].
func NewLockArgs(k Keys, withQueue bool) LockArgs {
	args := LockArgs{lock: k.Lock}
	if withQueue {
		args.queue = newQueueArgs(k)
	}
	return args
}

// setArgs sets the arguments that depend on the ID, and the others unless they are set.
func (h *Hold) setArgs() {
	if h.Args.lock == nil {
		h.Args.lock = h.Keys.Lock
	}
	h.Args.released, h.Args.id = h.Released, h.ID
}

// ownerArg returns the owner as an argument.
func (h *Hold) ownerArg() any {
	if h.Owner == h.ID {
		return h.Args.id
	}
	return h.Owner
}

// Scripts take their last arguments only as far as these differ from their defaults. So a request of the most frequent kind is
// short, and the number of its arguments says so to the fast path of its script.

// Durations as arguments of scripts, in ms.
var (
	redlockMemoryArg any = Milliseconds(redlockMemory)
	releaseMemoryArg any = Milliseconds(releaseMemory)
	noMemoryArg      any = int64(0)
	// abandonMemoryArg is AbandonMemory.
	abandonMemoryArg any = Milliseconds(AbandonMemory)

	lastTTL atomic.Pointer[ttlText] // nil before the first
)

// ttlText is a TTL and its argument.
type ttlText struct {
	ttl time.Duration
	arg any
}

// ttlArg returns a TTL as an argument of scripts. It keeps the last one, because mostly all TTLs of a process are the same.
func ttlArg(ttl time.Duration) any {
	last := lastTTL.Load()
	if last == nil || last.ttl != ttl {
		last = &ttlText{ttl, Milliseconds(ttl)}
		lastTTL.Store(last)
	}
	return last.arg
}

// trimDefaults returns the arguments up to the last one that is not its default: "", 0 or false.
func trimDefaults(optional []any) []any {
	n := len(optional)
	for n > 0 && isDefault(optional[n-1]) {
		n--
	}
	return optional[:n]
}

func isDefault(arg any) bool {
	switch arg {
	case "", 0, int64(0), false:
		return true
	}
	return false
}

// idArg returns the ID of the hold as an optional argument: it is the name of the owner by default.
func (h *Hold) idArg() any {
	if h.Owner == h.ID {
		return ""
	}
	return h.Args.id
}

// releaseMemoryArgs returns the memories of [Instance.releaseMemories] as optional arguments: missing is found by default.
func (i *Instance) releaseMemoryArgs(h *Hold, what ReleaseReason) (found, missing any) {
	found, missing = i.releaseMemories(h, what)
	if missing == found {
		missing = noMemoryArg
	}
	return found, missing
}

// IDs makes the IDs of owners and holds of one client: its UUID, a colon and a number that is never used again. An owner has
// the ID of the first of its holds. It is safe for concurrent use.
type IDs struct {
	Client  string // the UUID; must be set before the first ID is made
	counter atomic.Uint64
}

// Next returns a new ID.
func (ids *IDs) Next() string {
	var digits [20]byte
	return ids.Client + ":" + string(strconv.AppendUint(digits[:0], ids.counter.Add(1), 10))
}

// Renew gives a hold a new ID, without unanswered requests. ID and Released are parts of one string, which costs one
// allocation.
func (ids *IDs) Renew(h *Hold) {
	var digits [20]byte
	number := strconv.AppendUint(digits[:0], ids.counter.Add(1), 10)
	h.Released = released + h.Keys.tag + ":" + ids.Client + ":" + string(number)
	h.ID = h.Released[len(h.Released)-len(ids.Client)-1-len(number):]
	h.Unanswered, h.Stored = 0, false
	h.setArgs()
}

// ClientOf returns the UUID of the client that has made an owner. It returns false for an owner of another form, which
// WithOwner has named. Owners of Redisson's clients have the same form.
func ClientOf(owner string) (client string, ok bool) {
	client, number, _ := strings.Cut(owner, ":")
	if len(client) != 36 || number == "" || len(number) > 20 {
		return "", false
	}
	for i := range len(client) {
		switch c := client[i]; {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return "", false
			}
		case (c < '0' || c > '9') && (c < 'a' || c > 'f'):
			return "", false
		}
	}
	return client, strings.Trim(number, "0123456789") == ""
}

// A release may have to be repeated because its answer was lost. What the client knows decides what Redis must remember of it,
// and what it means if a hold is not in Redis any more:
//
//	request without | release without | lease is valid for  | Redis remembers  | a missing hold was
//	an answer       | an answer       | the time of retries | the release for  |
//	no              | no              | yes                 | nothing          | expired, force-released or lost
//	no              | yes             | yes                 | nothing          | released, unless a mark says: forced
//	no              | no or yes       | no                  | releaseMemory    | what Redis remembers
//	yes             | no or yes       | yes or no           | AbandonMemory    | what Redis remembers
//
// No memory in the first two rows, because before the lease expires, only its own release and ForceUnlock delete a hold.
// ForceUnlock leaves a mark of each hold that it ends, for longer than the lease, see lua/lock/force.lua.
//
// What the second row cannot see: that Redis lost the hold, or an operator deleted its key, before the release whose answer was
// lost.

const (
	// ReleaseTimeout bounds how long a caller waits for the answer to a release, and so its retries.
	ReleaseTimeout = 5 * time.Second
	// releaseMemory is how long Redis remembers a release of a lease that may expire during the retries.
	releaseMemory = ReleaseTimeout + time.Second
	// redlockMemory is how long one server of a Redlock remembers any release, because a read repair of the hold may be in
	// flight, and would grant it anew.
	redlockMemory = 15 * time.Second
)

// releaseMemories returns for how many ms Redis remembers the release of a hold, and refuses requests of the hold that arrive
// later: found if the release finds the hold in Redis, missing if it does not. Both are arguments of scripts; 0 is no memory.
//
// There are two because the only request that can have stored a hold may be the unanswered one. If its release finds such a
// hold, the request has arrived, and no other will. It is different if an answer has said that Redis has the hold:
//
//  1. A request is answered: the hold is in the queue.
//  2. The waiter asks again. The request is still on its way when the holder's release grants the lock to the waiter.
//  3. The waiter gives up. Its release finds the hold, and must be remembered.
//  4. The request arrives. Otherwise it would take the lock for a caller that does not exist.
func (i *Instance) releaseMemories(h *Hold, what ReleaseReason) (found, missing any) {
	switch {
	case i.OfRedlock && what == NeverHeld: // votes are not counted as unanswered
		return redlockMemoryArg, abandonMemoryArg
	case i.OfRedlock:
		return redlockMemoryArg, redlockMemoryArg
	case what == OnlyQueued, what == NeverHeld && h.Unanswered == 0:
		return noMemoryArg, noMemoryArg
	case what == NeverHeld && h.Unanswered == 1 && !h.Stored:
		return noMemoryArg, abandonMemoryArg
	case what == NeverHeld || h.Unanswered > 0:
		return abandonMemoryArg, abandonMemoryArg
	case h.ValidUntil.Sub(i.Now()) < releaseMemory:
		return releaseMemoryArg, releaseMemoryArg
	}
	return noMemoryArg, noMemoryArg
}

// atLeast returns a memory of [Instance.releaseMemories], or d if that is longer.
func atLeast(d time.Duration, memory any) any {
	if ms, ok := memory.(int64); ok {
		return max(ms, Milliseconds(d))
	}
	return memory
}

// notCompact is the status of release_fast.lua for a lock that is not compact any more: the release must be repeated with all keys.
const notCompact = 5

// initCompactRelease makes a command that runs a script with release_fast.lua for a hold that was granted in the compact state.
func (i *Instance) initCompactRelease(c *transport.Command, s *transport.Script, h *Hold) {
	c.Init(s, 1, h.Args.lock, h.ownerArg())
	if i.PublishVerbArg != "PUBLISH" || strings.Contains(h.Keys.Lock, "{") {
		c.Args = append(c.Args, h.Keys.Channel, i.PublishVerbArg)
	}
}

// sendRelease runs a command that releases the hold, and notes whether it may have been executed without an answer.
func (h *Hold) sendRelease(ctx context.Context, e *transport.Executor, c *transport.Command) error {
	err := e.Run(ctx, c)
	if c.Repeated || err != nil && transport.MayHaveRun(err) {
		h.ReleasesUnanswered++
	}
	return err
}

// wasReleased returns whether an earlier release has ended a hold that Redis does not have any more, and does not remember. The
// caller must have found the hold missing just now.
//
// The clock is read last, because the hold was found missing, and the mark was read, before that. So the lease had not expired
// then, and the mark would have been there.
func (i *Instance) wasReleased(ctx context.Context, h *Hold) (bool, error) {
	if h.ReleasesUnanswered == 0 || i.Now() >= h.ValidUntil {
		return false, nil
	}
	forced, err := done(i.Exec.Do(ctx, wasForcedScript, []string{h.Keys.Forced()}, h.ID))
	return err == nil && !forced && i.Now() < h.ValidUntil, err
}
