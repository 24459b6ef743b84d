package core

import (
	"context"
	"errors"
	"sync"
)

// tally counts what the servers of a Redlock say to one renewal.
type tally struct {
	quorum  *quorum
	renewal *renewal

	mu      sync.Mutex
	sentAt  instant // the first of those that count
	held    int
	lost    []*voter // they say that the hold is not there
	errs    []error
	decided bool
}

// renewAll renews on every server, in the batches of each. What a majority confirms is renewed, for the time since the
// first of them was asked. A server that does not know the hold, because it has lost its memory or was cut off for the
// hold's TTL, is given it again; but it does not count before the next renewal: should a majority have forgotten the
// hold, then somebody else may have held the lock meanwhile.
func (q *quorum) renewAll(renewals []*renewal) {
	tallies := make([]*tally, len(renewals))
	for i, r := range renewals {
		tallies[i] = &tally{quorum: q, renewal: r, sentAt: never}
	}
	for _, v := range q.voters {
		calls := make([]*command, len(renewals))
		for i, r := range renewals {
			calls[i] = v.renewal(r, func(sentAt instant, held bool, err error) {
				tallies[i].count(v, sentAt, held, err)
			})
		}
		v.server.exec.renew(calls)
	}
}

// finding is what follows from an answer.
type finding struct {
	decided   bool // by this very answer
	held      bool
	err       error
	forgotten []*voter // are to be given the hold again
}

// count takes in one answer. Whoever hears of the outcome hears of it after all locks are let go.
func (t *tally) count(v *voter, sentAt instant, held bool, err error) {
	d := t.add(v, sentAt, held, err)
	if d.decided {
		t.renewal.done(t.sentAt, d.held, d.err)
	}
	h := *t.renewal.hold
	h.ttl = max(h.ttl, t.renewal.left) // it may have been extended
	for _, v := range d.forgotten {
		t.quorum.keeper.background(func(ctx context.Context) { _ = v.settle(ctx, &h, t.renewal.token, true) })
	}
}

func (t *tally) add(v *voter, sentAt instant, held bool, err error) (d finding) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err != nil && !errors.Is(err, ErrLeaseLost):
		t.errs = append(t.errs, err)
	case !held:
		t.lost = append(t.lost, v)
	case !t.decided:
		t.sentAt = min(t.sentAt, sentAt)
		fallthrough
	default:
		t.held++
	}
	all := len(t.quorum.voters)
	d.held = t.held >= t.quorum.majority
	answered := t.held + len(t.lost)
	switch {
	case t.decided:
	case d.held, len(t.lost) > all-t.quorum.majority:
		d.decided = true
	case answered+len(t.errs) == all:
		d.decided, d.err = true, &quorumError{answered: answered, of: all, errs: t.errs}
	}
	t.decided = t.decided || d.decided
	if d.held {
		d.forgotten, t.lost = t.lost, nil
	}
	return d
}
