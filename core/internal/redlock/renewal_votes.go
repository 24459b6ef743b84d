package redlock

import (
	"context"
	"sync"

	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/lockscript"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// renewalVotes counts the answers of the servers of a Redlock to one renewal.
type renewalVotes struct {
	quorum  *Quorum
	renewal *lockscript.Renewal

	mu      sync.Mutex
	sentAt  clock.Instant // the first of those that count
	held    int
	lost    []*node // which have lost the hold
	errs    []error
	decided bool
}

// RenewAll renews on every server. A hold is renewed if a majority confirms. Its validity counts from the first request of
// that majority. A server that has lost the hold, by a restart or a partition, is granted it again (read repair). Such a
// server counts from the next renewal on only. Why: if a majority has lost the hold, another client may have had the lock.
func (q *Quorum) RenewAll(renewals []*lockscript.Renewal) {
	votes := make([]*renewalVotes, len(renewals))
	for i, r := range renewals {
		votes[i] = &renewalVotes{quorum: q, renewal: r, sentAt: keepalive.Never}
	}
	for _, v := range q.nodes {
		calls := make([]*transport.Command, len(renewals))
		for i, r := range renewals {
			calls[i] = v.RenewalCommand(r, func(sentAt clock.Instant, held bool, err error) {
				votes[i].count(v, sentAt, held, err)
			})
		}
		v.Exec.SubmitRenewals(calls)
	}
}

// renewalOutcome is what follows from an answer.
type renewalOutcome struct {
	decided bool // by this very answer
	held    bool
	err     error
	repair  []*node // are to be given the hold again
}

// count records one answer. It reports the outcome without holding t.mu.
func (t *renewalVotes) count(v *node, sentAt clock.Instant, held bool, err error) {
	d := t.add(v, sentAt, held, err)
	if d.decided {
		t.renewal.Done(t.sentAt, d.held, d.err)
	}
	h := *t.renewal.Hold
	h.TTL = max(h.TTL, t.renewal.Left) // it may have been extended
	for _, v := range d.repair {
		t.quorum.env.Go(func(ctx context.Context) { _ = v.commitToken(ctx, &h, t.renewal.Token, true) })
	}
}

func (t *renewalVotes) add(v *node, sentAt clock.Instant, held bool, err error) (d renewalOutcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err != nil && !keepalive.IsCause(err):
		t.errs = append(t.errs, err)
	case !held:
		t.lost = append(t.lost, v)
	case !t.decided:
		t.sentAt = min(t.sentAt, sentAt)
		fallthrough
	default:
		t.held++
	}
	all := len(t.quorum.nodes)
	d.held = t.held >= t.quorum.majority
	answered := t.held + len(t.lost)
	switch {
	case t.decided:
	case d.held, len(t.lost) > all-t.quorum.majority:
		d.decided = true
	case answered+len(t.errs) == all:
		d.decided, d.err = true, &Error{answered: answered, of: all, errs: t.errs}
	}
	t.decided = t.decided || d.decided
	if d.held {
		d.repair, t.lost = t.lost, nil
	}
	return d
}
