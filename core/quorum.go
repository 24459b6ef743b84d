package core

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// quorum is the protocol of [Redlock.Mutex]: that of a Mutex on each of several servers, and what a majority of them
// says is the answer. No operation waits for a minority; what that could not be asked is made up for in the background.
type quorum struct {
	keeper   *keeper
	voters   []*voter
	majority int
	roster   *roster
}

const (
	// leastPatience, or a hundredth of the TTL if that is longer, is what each server gets to answer, so that a
	// dead one does not use up the lease that the others grant. Not more than mostPatience, since some callers wait.
	leastPatience = 50 * time.Millisecond
	mostPatience  = time.Second
	// splitPatience times what each server gets to answer is how long attempts in which nobody got a majority are
	// repeated before the lock counts as busy.
	splitPatience = 4
)

// patience is how long one server gets to answer.
func (q *quorum) patience(ttl time.Duration) time.Duration {
	if q.keeper.nodeTimeout > 0 {
		return q.keeper.nodeTimeout
	}
	return min(max(leastPatience, ttl/100), mostPatience)
}

// quorumError says that too few servers have answered.
type quorumError struct {
	answered, of int
	errs         []error
}

func (e *quorumError) Error() string {
	text := fmt.Sprintf("%d of %d servers answered", e.answered, e.of)
	if err := errors.Join(e.errs...); err != nil {
		text += ": " + bareText(err)
	}
	return text
}

func (e *quorumError) Unwrap() []error { return e.errs }

func undecided(err error) bool {
	var votes *quorumError
	return errors.As(err, &votes)
}

// outcome is that of a request which every server was asked for and which was taken back where it succeeded.
func (e *quorumError) outcome() outcome {
	if slices.ContainsFunc(e.errs, transient) {
		return notExecuted
	}
	return rejected
}

// acquire holds ballots until somebody has won. When several callers ask all servers at the same moment, each may get
// some, and none a majority. So after a first defeat a caller asks the servers in one order, the same for all, one after
// the other until one grants the lock, and then all others; and each waits a moment before, a random one that grows.
func (q *quorum) acquire(ctx context.Context, h *hold) (answer, error) {
	until := q.keeper.now().add(splitPatience * q.patience(h.ttl))
	for {
		a, split, err := q.attempt(ctx, h)
		if !split || ctx.Err() != nil || q.keeper.now() > until {
			return a, err
		}
	}
}

// attempt holds one ballot. It reports a split if there was no majority for anybody, as far as can be told: a winner may
// have left a minority of the servers to others, but tells the rest of it.
func (q *quorum) attempt(ctx context.Context, h *hold) (a answer, split bool, err error) {
	if h.defeats > 0 {
		pause(ctx, min(breath(h.defeats, h.trip), q.patience(h.ttl)), nil, nil)
		q.keeper.rename(h) // the old one is being given up
	}
	began := q.keeper.now()
	b := newBallot(q, h)
	won := b.hold(ctx, h.defeats > 0)
	h.trip = max(b.trip, h.trip/2)
	if won {
		err := b.settle(ctx)
		if left := q.keeper.renewer.until(began, h.ttl).sub(q.keeper.now()); err == nil && left < h.ttl/10 {
			err = errTooLate
		}
		if err != nil {
			q.abandon(h)
			h.defeats++
			return answer{}, false, err
		}
		return answer{granted: true, token: b.token, sentAt: began}, false, nil
	}
	split = b.granted > 0 && len(b.lefts) > 0 && !b.taken
	if split {
		h.defeats++
	} else {
		h.defeats = 1
	}
	if ctx.Err() != nil {
		return answer{}, false, errNotSent // nothing that has to be taken back by anybody else
	}
	if !b.busy() || b.doubtful() {
		return answer{}, false, b.err()
	}
	return answer{waitState: waitState{holderTTL: b.left()}}, split, nil
}

// breath is how long to wait before the next ballot: as long as a release or a vote takes to reach all servers, and not
// as long as the others wait.
func breath(defeats int, trip time.Duration) time.Duration {
	trip = max(trip, time.Millisecond)
	return trip + rand.N(trip<<min(defeats, 8))
}

// abandon takes a hold out of all servers, in the background.
func (q *quorum) abandon(h *hold) {
	abandoned := *h
	for _, v := range q.voters {
		q.keeper.background(func(ctx context.Context) { _, _ = v.letGo(ctx, &abandoned, neverHeld) })
	}
}

// agree asks all servers the same, side by side, and returns what a majority says, as soon as that is known.
func (q *quorum) agree(ctx context.Context, ask func(ctx context.Context, v *voter) (bool, error)) (bool, error) {
	type vote struct {
		yes bool
		err error
	}
	votes := make(chan vote, len(q.voters))
	apart := alone(ctx)
	for _, v := range q.voters {
		if !q.keeper.background(func(context.Context) {
			yes, err := ask(apart, v)
			votes <- vote{yes, err}
		}) {
			return false, ErrClosed
		}
	}
	yes, no := 0, 0
	var errs []error
	for range q.voters {
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
			return false, errNotAnswered
		}
		switch {
		case yes >= q.majority:
			return true, nil
		case no > len(q.voters)-q.majority:
			return false, nil
		}
	}
	return false, &quorumError{answered: yes + no, of: len(q.voters), errs: errs}
}

// alone returns ctx without its end and without its groupMember.
//
// Why: the end of ctx must not keep requests from the servers that are asked last. A batch group takes one command of
// each member, and a Redlock sends several.
func alone(ctx context.Context) context.Context {
	if t, _ := ctx.Value(groupMemberKey{}).(*groupMember); t != nil {
		t.finish()
		ctx = context.WithValue(ctx, groupMemberKey{}, (*groupMember)(nil))
	}
	return context.WithoutCancel(ctx)
}

func (q *quorum) release(ctx context.Context, h *hold, what releaseReason) (bool, error) {
	return q.agree(ctx, func(ctx context.Context, v *voter) (bool, error) {
		mine := *h
		return v.letGo(ctx, &mine, what)
	})
}

func (q *quorum) renew(ctx context.Context, h *hold, ttl time.Duration) (bool, error) {
	return q.agree(ctx, func(ctx context.Context, v *voter) (held bool, err error) {
		err = v.ask(ctx, h.ttl, func(ctx context.Context) (err error) {
			held, err = v.renew(ctx, h, ttl)
			return err
		})
		return held, err
	})
}

func (q *quorum) raise(ctx context.Context, h *hold, token int64) (bool, error) {
	return q.agree(ctx, func(ctx context.Context, v *voter) (held bool, err error) {
		err = v.ask(ctx, h.ttl, func(ctx context.Context) (err error) {
			held, err = v.raise(ctx, h, token)
			return err
		})
		return held, err
	})
}

func (q *quorum) queued() *queuedLock { return nil }

// bar does nothing: a request is sent to each server once, and one that a server runs late is granted by a minority.
func (q *quorum) bar(*hold) {}

func (q *quorum) pending(*hold) *pending { return nil }

// location is the smallest of the names that the servers have for the place, so it is the same for all who ask while
// the same servers answer. That is why it waits for all of them, each for as long as one gets.
func (q *quorum) location(ctx context.Context, k keys) (string, error) {
	type reply struct {
		name string
		err  error
	}
	replies := make(chan reply, len(q.voters))
	apart := alone(ctx)
	for _, v := range q.voters {
		if !q.keeper.background(func(context.Context) {
			var r reply
			r.err = v.ask(apart, 0, func(ctx context.Context) (err error) {
				r.name, err = v.location(ctx, k)
				return err
			})
			replies <- r
		}) {
			return "", ErrClosed
		}
	}
	var names []string
	var errs []error
	for range q.voters {
		select {
		case r := <-replies:
			if r.err != nil {
				errs = append(errs, r.err)
			} else {
				names = append(names, r.name)
			}
		case <-ctx.Done():
			return "", errNotAnswered
		}
	}
	if len(names) < q.majority {
		return "", &quorumError{answered: len(names), of: len(q.voters), errs: errs}
	}
	return slices.Min(names), nil
}
