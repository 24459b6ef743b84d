package redlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/lifecycle"
	"github.com/holdfast-go/holdfast/core/internal/lockscript"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// Quorum is the protocol of [Redlock.Mutex]: that of a Mutex on each of several independent servers. The answer of a
// majority is the answer. No operation waits for a minority: its missed commands are sent again in the background.
type Quorum struct {
	env      *Environment
	nodes    []*node
	majority int
	roster   *roster
}

const (
	// minNodeTimeout is the least time that a server has for its answer. It has a hundredth of the TTL if that is longer, so
	// that a server that is down does not use up the lease that the others grant.
	minNodeTimeout = 50 * time.Millisecond
	// maxNodeTimeout bounds that time for long TTLs, because callers wait for the answer.
	maxNodeTimeout = time.Second
	// splitPatience times the timeout of a server is how long attempts are repeated in which no client got a majority. After
	// that the lock counts as busy.
	splitPatience = 4
)

var (
	errLateMajority = errors.New("answered after the lease had ended")
	errNotCommitted = errors.New("expired, forced or taken over before its token was committed")
)

// New returns the quorum of these servers.
func New(env *Environment, instances []*lockscript.Instance) *Quorum {
	q := &Quorum{env: env, majority: len(instances)/2 + 1, roster: &roster{byRunID: make(map[string]*node)}}
	for i, instance := range instances {
		q.nodes = append(q.nodes, newRedlockNode(i+1, instance, q))
	}
	return q
}

// nodeTimeout is how long one server has for its answer.
func (q *Quorum) nodeTimeout(ttl time.Duration) time.Duration {
	if q.env.NodeTimeout > 0 {
		return q.env.NodeTimeout
	}
	return min(max(minNodeTimeout, ttl/100), maxNodeTimeout)
}

// Error is the error of an operation that too few servers have answered.
type Error struct {
	answered, of int
	errs         []error
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%d of %d servers answered", e.answered, e.of)
	if err := errors.Join(e.errs...); err != nil {
		text += ": " + strings.NewReplacer("\n", "; ", "holdfast: ", "").Replace(err.Error())
	}
	return text
}

func (e *Error) Unwrap() []error { return e.errs }

// Outcome is that of a request which every server was asked for and which was taken back where it succeeded.
func (e *Error) Outcome() transport.Outcome {
	if slices.ContainsFunc(e.errs, transport.Transient) {
		return transport.NotExecuted
	}
	return transport.Rejected
}

// Acquire runs vote rounds until any client has won. Several clients that ask all servers at the same time may get a
// minority each (split vote). So after the first lost round a client waits for a random, growing time. Then it asks the
// servers one by one in a fixed order until one grants, and all others after that.
func (q *Quorum) Acquire(ctx context.Context, h *lockscript.Hold) (lockscript.Result, error) {
	until := q.env.Now().Add(splitPatience * q.nodeTimeout(h.TTL))
	for {
		a, split, err := q.vote(ctx, h)
		if !split || ctx.Err() != nil || q.env.Now() > until {
			return a, err
		}
	}
}

// rounds is what a Redlock keeps for a hold: its vote rounds so far.
type rounds struct {
	lost int           // in a row that were split
	rtt  time.Duration // that the servers' answers took
}

// roundsOf returns the rounds of a hold.
func roundsOf(h *lockscript.Hold) *rounds {
	r, ok := h.Own.(*rounds)
	if !ok {
		r = new(rounds)
		h.Own = r
	}
	return r
}

// vote runs one round. It reports a split vote if, as far as is known, no client has a majority. A server that has
// refused reports whether its holder's token was committed, and so whether another client has won.
func (q *Quorum) vote(ctx context.Context, h *lockscript.Hold) (a lockscript.Result, split bool, err error) {
	past := roundsOf(h)
	if past.lost > 0 {
		lifecycle.Pause(ctx, min(splitBackoff(past.lost, past.rtt), q.nodeTimeout(h.TTL)), nil, nil)
		q.env.IDs.Renew(h) // the old one is being given up
	}
	began := q.env.Now()
	b := newVoteRound(q, h)
	won := b.run(ctx, past.lost > 0)
	past.rtt = max(b.rtt, past.rtt/2)
	if won {
		err := b.awaitCommits(ctx)
		if left := q.env.TrustedUntil(began, h.TTL).Sub(q.env.Now()); err == nil && left < h.TTL/10 {
			err = errLateMajority
		}
		if err != nil {
			q.releaseAllLater(h)
			past.lost++
			return lockscript.Result{}, false, err
		}
		return lockscript.Result{Granted: true, Token: b.token, SentAt: began}, false, nil
	}
	split = b.granted > 0 && len(b.holderTTLs) > 0 && !b.othersWon
	if split {
		past.lost++
	} else {
		past.lost = 1
	}
	if ctx.Err() != nil {
		return lockscript.Result{}, false, transport.ErrNotSent // the caller has nothing to take back
	}
	if !b.busy() || b.reentryUnclear() {
		return lockscript.Result{}, false, b.err()
	}
	return lockscript.Result{WaitState: lockscript.WaitState{HolderTTL: b.holderTTL()}}, split, nil
}

// splitBackoff returns how long to wait before the next round: the time in which a release or a vote reaches all servers,
// and a random time on top, so that clients wait for different times.
func splitBackoff(defeats int, trip time.Duration) time.Duration {
	trip = max(trip, time.Millisecond)
	return trip + rand.N(trip<<min(defeats, 8))
}

// releaseAllLater releases a hold on all servers, in the background.
func (q *Quorum) releaseAllLater(h *lockscript.Hold) {
	abandoned := *h
	for _, v := range q.nodes {
		q.env.Go(func(ctx context.Context) { _, _ = v.releaseHold(ctx, &abandoned, lockscript.NeverHeld) })
	}
}

// agree asks all servers concurrently, and returns the answer of a majority as soon as it is known.
func (q *Quorum) agree(ctx context.Context, ask func(ctx context.Context, v *node) (bool, error)) (bool, error) {
	type vote struct {
		yes bool
		err error
	}
	votes := make(chan vote, len(q.nodes))
	apart := transport.WithoutEnd(ctx)
	for _, v := range q.nodes {
		if !q.env.Go(func(context.Context) {
			yes, err := ask(apart, v)
			votes <- vote{yes, err}
		}) {
			return false, q.env.Closed
		}
	}
	yes, no := 0, 0
	var errs []error
	for range q.nodes {
		select {
		case v := <-votes:
			switch {
			case v.err != nil:
				errs = append(errs, v.err)
			case v.yes:
				yes++
			default:
				no++
			}
		case <-ctx.Done():
			return false, transport.ErrNotAnswered
		}
		switch {
		case yes >= q.majority:
			return true, nil
		case no > len(q.nodes)-q.majority:
			return false, nil
		}
	}
	return false, &Error{answered: yes + no, of: len(q.nodes), errs: errs}
}

// Release implements lockscript.Strategy.
func (q *Quorum) Release(ctx context.Context, h *lockscript.Hold, what lockscript.ReleaseReason) (bool, error) {
	return q.agree(ctx, func(ctx context.Context, v *node) (bool, error) {
		mine := *h
		return v.releaseHold(ctx, &mine, what)
	})
}

// Renew implements lockscript.Strategy.
func (q *Quorum) Renew(ctx context.Context, h *lockscript.Hold, ttl time.Duration) (bool, error) {
	return q.agree(ctx, func(ctx context.Context, v *node) (held bool, err error) {
		err = v.ask(ctx, h.TTL, func(ctx context.Context) (err error) {
			held, err = v.Renew(ctx, h, ttl)
			return err
		})
		return held, err
	})
}

// Raise implements lockscript.Strategy.
func (q *Quorum) Raise(ctx context.Context, h *lockscript.Hold, token int64) (bool, error) {
	return q.agree(ctx, func(ctx context.Context, v *node) (held bool, err error) {
		err = v.ask(ctx, h.TTL, func(ctx context.Context) (err error) {
			held, err = v.Raise(ctx, h, token)
			return err
		})
		return held, err
	})
}

// Bar does nothing. Why: a request is sent to each server once, and one that a server runs late is granted by a minority.
func (q *Quorum) Bar(*lockscript.Hold) {}

// Pending returns nil: each node has its own.
func (q *Quorum) Pending(*lockscript.Hold) *transport.Pending { return nil }

// DeploymentID returns the smallest of the names that the servers have for the place. So it is the same for all clients while
// the same servers answer. That is why it waits for all of them, each for as long as one gets.
func (q *Quorum) DeploymentID(ctx context.Context, k lockscript.Keys) (string, error) {
	type reply struct {
		name string
		err  error
	}
	replies := make(chan reply, len(q.nodes))
	apart := transport.WithoutEnd(ctx)
	for _, v := range q.nodes {
		if !q.env.Go(func(context.Context) {
			var r reply
			r.err = v.ask(apart, 0, func(ctx context.Context) (err error) {
				r.name, err = v.DeploymentID(ctx, k)
				return err
			})
			replies <- r
		}) {
			return "", q.env.Closed
		}
	}
	var names []string
	var errs []error
	for range q.nodes {
		select {
		case r := <-replies:
			if r.err != nil {
				errs = append(errs, r.err)
			} else {
				names = append(names, r.name)
			}
		case <-ctx.Done():
			return "", transport.ErrNotAnswered
		}
	}
	if len(names) < q.majority {
		return "", &Error{answered: len(names), of: len(q.nodes), errs: errs}
	}
	return slices.Min(names), nil
}

// Force takes the lock from its holders on all servers. It returns true if a majority had it.
func (q *Quorum) Force(ctx context.Context, k lockscript.Keys) (bool, error) {
	id := q.env.IDs.Next()
	return q.agree(ctx, func(ctx context.Context, v *node) (bool, error) {
		return v.Force(ctx, k, id)
	})
}

// AskNode runs a request of one server, numbered from 0, for no longer than each server gets.
func (q *Quorum) AskNode(ctx context.Context, i int, request func(ctx context.Context) error) error {
	return q.nodes[i].ask(ctx, 0, request)
}
