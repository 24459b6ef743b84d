package quorum

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// Strategy is the script.Strategy of core.Redlock: a Mutex on each of several independent servers. The answer of a
// majority is the answer. No operation waits for a minority: its missed commands are sent again in the background.
//
// It is safe for concurrent use. What it remembers of an acquisition is in the hold, see script.Rounds.
type Strategy struct {
	env      *Environment
	nodes    []*node
	majority int // more than half of the nodes, so any two majorities have a node in common

	mu sync.Mutex
	// byRunID has the nodes by the run IDs of their servers, so that no server has two votes. Of two nodes of one server, the first
	// to enter is verified. Nothing leaves it. What it does not find: a server that has restarted has another run ID, which its
	// verified node does not enter. A second node of that server, which was refused before, can enter it. Guarded by mu.
	byRunID map[string]*node
}

const (
	// usualNodeTimeout is the time that a server has for its answer. It is not less, because all servers may be slow at once,
	// as on a busy host. A request that is given up costs its connection, so each retry would make them slower.
	usualNodeTimeout = 300 * time.Millisecond
	// shareOfTTL bounds that time for short TTLs. A vote and a commit that take it leave half of the lease, or a quarter if
	// the vote asks one server before the others.
	shareOfTTL = 4
	// minNodeTimeout is the least time, whatever the TTL.
	minNodeTimeout = 50 * time.Millisecond
	// maxNodeTimeout is the time for the longest TTLs. It is bounded because callers wait for the answer.
	maxNodeTimeout = time.Second
	// splitPatience times the timeout of a server is how long rounds are repeated in which no client got a majority. After
	// that the lock counts as busy, and the caller may wait for it.
	splitPatience = 4
)

var (
	// errLateMajority is the error of a round that was won too late for a lease of use.
	errLateMajority = errors.New("answered after the lease had ended")
	// errNotCommitted is the error of a server that answers that it does not have the hold whose token is to be committed.
	errNotCommitted = errors.New("expired, force-released or taken over before its token was committed")
)

// New returns the quorum of these servers, an odd number. It sends nothing, see Introduce. It keeps env.
func New(env *Environment, instances []*script.Instance) *Strategy {
	q := &Strategy{env: env, majority: len(instances)/2 + 1, byRunID: make(map[string]*node)}
	for i, instance := range instances {
		q.nodes = append(q.nodes, newRedlockNode(i+1, instance, q))
	}
	return q
}

// nodeTimeout returns how long one server has for its answer. A ttl of 0 is for requests that belong to no hold. Otherwise
// it follows from the TTL, so that servers that are down do not use up the lease that the others grant.
func (q *Strategy) nodeTimeout(ttl time.Duration) time.Duration {
	if q.env.NodeTimeout > 0 {
		return q.env.NodeTimeout
	}
	if ttl == 0 {
		return usualNodeTimeout
	}
	return max(minNodeTimeout, min(usualNodeTimeout, ttl/shareOfTTL), min(maxNodeTimeout, ttl/100))
}

// Error is the error of an operation that too few servers have answered, or whose answers decide nothing.
type Error struct {
	answered, of int     // servers that have granted, refused or confirmed, and all servers
	errs         []error // of the others, as far as they are known
}

// Error returns how many of how many servers have granted, refused or confirmed, and the errors of others. "an answer that
// counts", because an error of a server is an answer too.
func (e *Error) Error() string {
	text := fmt.Sprintf("%d of %d servers gave an answer that counts", e.answered, e.of)
	if err := errors.Join(e.errs...); err != nil {
		text += ": " + strings.NewReplacer("\n", "; ", "holdfast: ", "").Replace(err.Error())
	}
	return text
}

// Unwrap returns the errors of the servers.
func (e *Error) Unwrap() []error { return e.errs }

// Outcome returns NotExecuted if the same request may succeed later: the error of at least one server is transient, and those
// that waiting does not mend leave a majority. Otherwise it returns Rejected. It never returns Unknown, because a lost round
// releases its hold on all servers that may have it, so the caller has nothing to take back.
func (e *Error) Outcome() transport.Outcome {
	if !e.hopeless() && slices.ContainsFunc(e.errs, transport.Transient) {
		return transport.NotExecuted
	}
	return transport.Rejected
}

// Unrecognized returns true if the same request may succeed later because servers have answered something that no Redis does.
func (e *Error) Unrecognized() bool {
	return !e.hopeless() && slices.ContainsFunc(e.errs, transport.Unrecognized)
}

// hopeless returns true if so many servers have an error that waiting does not mend that the others are no majority.
func (e *Error) hopeless() bool {
	lasting := 0
	for _, err := range e.errs {
		if !transport.Transient(err) && !transport.Unrecognized(err) {
			lasting++
		}
	}
	return lasting > (e.of-1)/2
}

// Name implements script.Strategy.
func (q *Strategy) Name() string { return "redlock" }

// Abilities implements script.Strategy. It returns none, because no server decides by itself.
func (q *Strategy) Abilities() script.Abilities { return script.Abilities{} }

// Acquire implements script.Strategy. It runs vote rounds until any client has won, at most for splitPatience. It gives
// h a new ID for each round after the first. So after Acquire, h.ID is the ID of the last round.
//
// Not all servers at once in each round, because clients that wait for the same release would split the votes again and again.
//
//  1. Clients A, B and C ask five servers at the same time. A and B get two servers each, and C gets one.
//  2. Each client releases what it has, and pauses for a random time that grows with each split.
//  3. Each client asks one server after the other, all in the same order. A is the first to ask s1, and s1 grants.
//  4. A asks all other servers at once. B is refused by s1, and pauses before it asks s2, so A is faster.
func (q *Strategy) Acquire(ctx context.Context, h *script.Hold, _ script.Wanted) (script.Result, error) {
	until := q.env.Now().Add(splitPatience * q.nodeTimeout(h.TTL))
	for {
		a, split, err := q.vote(ctx, h)
		if !split || ctx.Err() != nil || q.env.Now() > until {
			return a, err
		}
	}
}

// vote runs one round. These are the results:
//
//   - a.Granted is true: a majority has granted the hold and has its token. Validity counts from the begin of this round.
//   - a.Refused is not nil: the owner would wait for itself, because it has the lock by another strategy on too many servers.
//   - a.WaitState is set: the lock is held or contested.
//   - err is not nil: too few servers have answered, a re-entry is unclear, or the majority came too late.
//   - split is true beside a.WaitState: some servers have granted, some have refused, and no client is known to have won.
//     Then the round is worth repeating soon. A server that refuses says whether its holder's token is committed.
//
// If the round was not won, its hold is released in the background. So err is ErrNotSent if ctx has ended before the
// decision.
func (q *Strategy) vote(ctx context.Context, h *script.Hold) (a script.Result, split bool, err error) {
	past := &h.Rounds
	if past.Lost > 0 {
		keepalive.Pause(ctx, min(splitBackoff(past.Lost, past.RTT), q.nodeTimeout(h.TTL)), nil, nil)
		q.env.IDs.Renew(h) // servers may still be releasing the hold of the last round, and would refuse its ID
	}
	began := q.env.Now() // after the pause: rounds that were lost take nothing off the lease
	b := newVoteRound(q, h)
	won := b.run(ctx, past.Lost > 0)
	past.RTT = max(b.rtt, past.RTT/2)
	if won {
		err := b.awaitCommits(ctx)
		if left := q.env.TrustedUntil(began, h.TTL).Sub(q.env.Now()); err == nil && left < h.TTL/10 {
			err = errLateMajority
		}
		if err != nil {
			q.releaseAllLater(h) // the goroutines of a round that was won do not release
			past.Lost++
			return script.Result{}, false, err
		}
		return script.Result{Granted: true, Grant: script.Grant{Token: b.token, SentAt: began}}, false, nil
	}
	split = b.granted > 0 && len(b.holderTTLs) > 0 && !b.othersWon
	if split {
		past.Lost++
	} else {
		past.Lost = 1
	}
	if ctx.Err() != nil {
		return script.Result{}, false, transport.ErrNotSent // the caller has nothing to take back
	}
	if b.upgrades > len(q.nodes)-q.majority { // the owner keeps itself from a majority
		return script.Result{Refused: b.upgrade}, false, nil
	}
	if !b.busy() || b.reentryUnclear() {
		return script.Result{}, false, b.err()
	}
	return script.Result{WaitState: script.WaitState{Holder: b.holder(), HolderTTL: b.holderTTL()}}, split, nil
}

// splitBackoff returns how long to wait before the next round: the time in which a release or a vote reaches all servers, and a
// random time on top. They are random because clients must wait for different times. They are in proportion to the trip because
// a pause that is shorter than a round trip keeps no two clients apart.
func splitBackoff(defeats int, trip time.Duration) time.Duration {
	trip = max(trip, time.Millisecond)
	return trip + rand.N(trip<<min(defeats, 8))
}

// releaseAllLater releases a hold that no caller had on all servers, in the background. A commit that is still in flight
// does no harm: a server that gets it after the release refuses it.
func (q *Strategy) releaseAllLater(h *script.Hold) {
	abandoned := *h // the next round gives h another ID
	for _, v := range q.nodes {
		mine := abandoned // each release writes to its own copy
		q.env.Go(func(ctx context.Context) { _, _ = v.releaseHold(ctx, &mine, script.NeverHeld) })
	}
}

// askAll asks all servers concurrently, and counts their answers until enough returns true or all have come. It returns
// ErrNotAnswered if ctx ends before. All servers are asked in any case. So ask runs on several goroutines at once and
// may outlive askAll: it must not write to what the caller shares.
func askAll[T any](ctx context.Context, q *Strategy, ask func(ctx context.Context, v *node) (T, error), enough func(answers []T) bool) (answers []T, errs []error, err error) {
	type reply struct {
		answer T
		err    error
	}
	replies := make(chan reply, len(q.nodes))
	apart := transport.WithoutEnd(ctx)
	for _, v := range q.nodes {
		if !q.env.Go(func(context.Context) {
			answer, err := ask(apart, v)
			replies <- reply{answer, err}
		}) {
			return nil, nil, q.env.Closed
		}
	}
	for range q.nodes {
		select {
		case r := <-replies:
			if r.err != nil {
				errs = append(errs, r.err)
			} else if answers = append(answers, r.answer); enough(answers) {
				return answers, errs, nil
			}
		case <-ctx.Done():
			return nil, nil, transport.ErrNotAnswered
		}
	}
	return answers, errs, nil
}

// agree asks all servers concurrently, and returns the answer of a majority as soon as it is known. It returns an Error if
// neither true nor false gets a majority, and otherwise the errors of askAll.
func (q *Strategy) agree(ctx context.Context, ask func(ctx context.Context, v *node) (bool, error)) (bool, error) {
	yes, no := 0, 0
	decided := func() bool { return yes >= q.majority || no > len(q.nodes)-q.majority } // or a majority of yes is out of reach
	_, errs, err := askAll(ctx, q, ask, func(answers []bool) bool {
		if answers[len(answers)-1] {
			yes++
		} else {
			no++
		}
		return decided()
	})
	if err == nil && !decided() {
		err = &Error{answered: yes + no, of: len(q.nodes), errs: errs}
	}
	return yes >= q.majority, err
}

// Release implements script.Strategy. A server that does not answer gets the release later, whatever Release returns.
// Each goroutine has a copy of the hold, because a release writes to it.
func (q *Strategy) Release(ctx context.Context, h *script.Hold, what script.ReleaseReason) (bool, error) {
	return q.agree(ctx, func(ctx context.Context, v *node) (bool, error) {
		mine := *h
		return v.releaseHold(ctx, &mine, what)
	})
}

// Renew implements script.Strategy: it extends the hold on demand. Unlike RenewAll, it repairs no server. The next
// renewal of the lease does that, with the extended TTL.
func (q *Strategy) Renew(ctx context.Context, h *script.Hold, ttl time.Duration) (bool, error) {
	return q.agree(ctx, func(ctx context.Context, v *node) (bool, error) {
		return ask(ctx, v, h.TTL, func(ctx context.Context) (bool, error) { return v.Renew(ctx, h, ttl) })
	})
}

// Raise implements script.Strategy.
func (q *Strategy) Raise(ctx context.Context, h *script.Hold, token int64) (bool, error) {
	return q.agree(ctx, func(ctx context.Context, v *node) (bool, error) {
		return ask(ctx, v, h.TTL, func(ctx context.Context) (bool, error) { return v.Raise(ctx, h, token) })
	})
}

// Bar implements script.Strategy. It does nothing, although a request without an answer may still arrive, because it was sent
// to each server only once. While the lease lasts, the server grants what belongs to the lease. After the release the server
// refuses it, as long as it remembers the release. Even later, a minority has a hold until its TTL expires.
func (q *Strategy) Bar(*script.Hold) {}

// Pending implements script.Strategy. It returns nil: each node has its own, and Release adds to them by itself.
func (q *Strategy) Pending(*script.Hold) *transport.Pending { return nil }

// DeploymentID returns the smallest of the IDs of the servers. So it is the same for all clients while the same servers
// answer. That is why it waits for all servers, each for as long as one gets.
func (q *Strategy) DeploymentID(ctx context.Context, k script.Keys) (string, error) {
	names, errs, err := askAll(ctx, q, func(ctx context.Context, v *node) (string, error) {
		return ask(ctx, v, 0, func(ctx context.Context) (string, error) { return v.DeploymentID(ctx, k) })
	}, func([]string) bool { return false })
	switch {
	case err != nil:
		return "", err
	case len(names) < q.majority:
		return "", &Error{answered: len(names), of: len(q.nodes), errs: errs}
	}
	return slices.Min(names), nil
}

// Force takes the lock from its holders on all servers. It returns true if the lock was held on a majority.
func (q *Strategy) Force(ctx context.Context, k script.Keys) (bool, error) {
	id := q.env.IDs.Next()
	return q.agree(ctx, func(ctx context.Context, v *node) (bool, error) {
		return ask(ctx, v, 0, func(ctx context.Context) (forced bool, err error) {
			forced, _, err = v.Force(ctx, k, id, nil)
			return forced, err
		})
	})
}

// Environment is what a quorum needs of the client. It must not be changed after New. Its functions are called from many
// goroutines at once.
type Environment struct {
	transport.Background
	IDs    *script.IDs
	Prefix string // of keys
	Logger *slog.Logger

	NodeTimeout  time.Duration // for each request to one server; 0 for one that follows from the TTL
	RestartDelay time.Duration // for which a server grants no locks after a start

	// TrustedUntil returns until when a grant of that TTL is valid whose first request was sent at t: the TTL less the drift.
	TrustedUntil func(t keepalive.Instant, ttl time.Duration) keepalive.Instant
	// SameServer returns the error of two nodes, numbered from 1, that are the same server. a is the smaller number.
	SameServer func(a, b int) error
	// TooManyPending warns that a server has transport.MaxPending releases to come, so that further holds expire.
	TooManyPending func()
	// Closed is the error of a request of a client that has finished, and so runs no goroutine for a server any more.
	Closed error
}

// introductionTimeout bounds how long Introduce waits for the run IDs of the servers.
const introductionTimeout = 2 * time.Second

// identityError says that two nodes are the same server. The node that gets it has no vote.
type identityError struct{ error }

func (e *identityError) Unwrap() error { return e.error }

// Outcome is that nothing was executed: a node without a known identity is asked nothing else.
func (e *identityError) Outcome() transport.Outcome { return transport.Rejected }

// isIdentityError returns true if err is or wraps an identityError.
func isIdentityError(err error) bool {
	if err == nil { // by far the most frequent; errors.As costs an allocation
		return false
	}
	var same *identityError
	return errors.As(err, &same)
}

// enter records that a node has this run ID. It returns an identityError if another node has it. To enter a node twice
// changes nothing, so concurrent requests may verify it.
func (q *Strategy) enter(runID string, v *node) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if other := q.byRunID[runID]; other != nil && other != v {
		return &identityError{q.env.SameServer(min(other.number, v.number), max(other.number, v.number))}
	}
	q.byRunID[runID] = v
	return nil
}

// Introduce asks all servers for their run IDs, for at most introductionTimeout. It returns an error if two nodes are the
// same server. Unwrap of that error returns the error of Environment.SameServer.
//
// It returns nil even if servers do not answer. Such a server is asked again before its vote counts.
func (q *Strategy) Introduce() error {
	ctx, cancel := context.WithTimeout(context.Background(), introductionTimeout)
	defer cancel()
	errs := make([]error, len(q.nodes))
	var all sync.WaitGroup
	for i, v := range q.nodes {
		all.Go(func() { errs[i] = v.verifyIdentity(ctx) })
	}
	all.Wait()
	for _, err := range errs {
		if isIdentityError(err) {
			return err
		}
	}
	return nil
}

// subscription subscribes to releases on all servers of a Redlock. The first message of any server notifies.
type subscription struct {
	c    chan struct{} // shared by all subscribers; it holds one value, so messages that come together notify once
	each []*transport.Subscriber
	need int // servers that must have confirmed, for a message to be expected
}

// Subscribe implements script.Strategy. A majority must confirm the subscription, because the servers that had granted the lock
// are a majority too, so at least one of them is subscribed when they publish its release.
func (q *Strategy) Subscribe(k script.Keys) script.Subscription {
	e := &subscription{c: make(chan struct{}, 1), need: q.majority}
	for _, v := range q.nodes {
		e.each = append(e.each, v.Subs.SubscribeTo(e.c, k.Channel))
	}
	return e
}

// Notifications implements script.Subscription.
func (e *subscription) Notifications() <-chan struct{} { return e.c }

// Confirmed implements script.Subscription. It becomes false again if connections break.
func (e *subscription) Confirmed() bool {
	confirmed := 0
	for _, l := range e.each {
		if l.Confirmed() {
			confirmed++
		}
	}
	return confirmed >= e.need
}

// StartAsking implements script.Subscription. It returns false, because a release of a Redlock wakes all clients: each server
// might wake another client, and none of them would learn that a majority is free.
func (*subscription) StartAsking() bool { return false }

// Close implements script.Subscription. It ends the subscription on each server.
func (e *subscription) Close() {
	for _, l := range e.each {
		l.Close()
	}
}
