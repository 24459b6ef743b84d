package quorum

import (
	"context"
	"sync"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// renewalVotes counts the answers of the servers of a Redlock to one renewal, which come from several goroutines. It counts
// answers after the decision too: a server that has lost the hold is repaired even if its answer comes last.
type renewalVotes struct {
	quorum  *Strategy
	renewal *script.Renewal

	mu sync.Mutex

	// Guarded by mu.
	sentAt  keepalive.Instant // when the first command was sent that has confirmed; not changed once decided is true
	held    int               // servers that have confirmed
	lost    []*node           // servers that have lost the hold, and are not being repaired yet
	errs    []error           // of servers whose answer says nothing about the hold
	decided bool              // true once one answer was the one after which Done is called
}

// RenewAll implements script.Strategy: it renews on every server. A hold is renewed if a majority confirms. Its validity
// counts from the first request of that majority. Why the first: from then on, that server may let the hold expire.
//
// A server that has lost the hold, by a restart or a partition, is granted it again (read repair). Such a server counts only
// from the next renewal on. Why, with the holder A, the servers s1 to s3, and s3 down:
//
//  1. s2 restarts without its data. Only s1 has the hold of A.
//  2. s3 comes back. Client B is granted the lock by s2 and s3, and unlocks it.
//  3. A renews. s1 confirms, s2 and s3 do not have the hold.
//
// If the repair of s2 counted in step 3, A would keep its lease, although B had the lock in between.
func (q *Strategy) RenewAll(renewals []*script.Renewal) {
	votes := make([]*renewalVotes, len(renewals))
	for i, r := range renewals {
		votes[i] = &renewalVotes{quorum: q, renewal: r, sentAt: keepalive.Never} // later than any command
	}
	for _, v := range q.nodes {
		calls := make([]*transport.Command, len(renewals))
		for i, r := range renewals {
			calls[i] = v.RenewalCommand(r, func(sentAt keepalive.Instant, held bool, err error) {
				votes[i].count(v, sentAt, held, err)
			})
		}
		v.Exec.SubmitRenewals(calls)
	}
}

// renewalOutcome is what follows from one answer.
type renewalOutcome struct {
	decided bool    // true for the one answer that decides, after which Done must be called
	held    bool    // true if a majority has confirmed by now
	err     error   // not nil if all servers have answered and nothing is decided by a majority
	repair  []*node // servers that must be granted the hold again; none before a majority has confirmed
}

// count records one answer, and acts on what follows from it. It calls Done without holding mu. Why: Done takes the mutex of
// the Renewer, and runs hooks of the user. It may read sentAt without mu, because sentAt is not changed any more.
//
// A repair may cross the release of the same hold:
//
//  1. A server has lost the hold. A majority confirms, and the repair is sent.
//  2. The holder unlocks. The release reaches the server before the repair.
//  3. The repair arrives. The server remembers the release (redlockMemory in package script), and refuses.
//
// The repair copies the hold. So the release of a lease must not write to the hold of a Redlock.
func (t *renewalVotes) count(v *node, sentAt keepalive.Instant, held bool, err error) {
	d := t.add(v, sentAt, held, err)
	if d.decided {
		t.renewal.Done(t.sentAt, d.held, d.err)
	}
	h := *t.renewal.Hold
	h.TTL = max(h.TTL, t.renewal.Left) // the holder may have been promised more by Extend
	for _, v := range d.repair {
		t.quorum.env.Go(func(ctx context.Context) { _ = v.commitToken(ctx, &h, t.renewal.Token, true) })
	}
}

// add counts one answer and returns what follows. An error that is a keepalive.Cause is an answer: the server does not have
// the hold. Any other error says nothing. Even if such errors leave no majority, add waits for all answers. Why: the lease
// is valid until its deadline anyway, and a later answer may say that the hold is lost.
func (t *renewalVotes) add(v *node, sentAt keepalive.Instant, held bool, err error) (d renewalOutcome) {
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
