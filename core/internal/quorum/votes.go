package quorum

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// voteRound requests one hold from all servers of a Redlock, once. Each request has a goroutine, which also acts on the
// decision. If the round is won, it commits the token of the majority to its server. If it is lost, it releases a hold
// that its server has granted, or may have granted.
//
// The round has no mutex. The goroutine of run counts, the goroutines of the servers send it their votes, and closing
// decided hands the decision back to them:
//
//  1. run starts a goroutine for each server, and counts the votes as they come.
//  2. run decides, sets won, and closes decided. It does so even if votes are missing, or if ctx has ended.
//  3. The goroutine of each server commits or releases, also if its server answers only now.
//
// All channels have room for one value of each server, so no goroutine waits for a reader.
type voteRound struct {
	quorum  *Strategy
	request script.Hold // a copy; each goroutine makes its own, because a request may write to its hold
	votes   chan vote

	// Used by the goroutine of run only.
	pending      map[*node]bool  // servers that were asked and have not answered; true if the server was suspect then
	granted      int             // servers that have granted the hold
	reentries    int             // of which the owner had the lock before, with a committed token
	parentGrants int             // of which the server had the parent, so that the grant is a re-entry under it
	holderTTLs   []time.Duration // one for each server that has refused
	holders      map[string]int  // on how many of them an owner has the lock
	upgrades     int             // of which the same owner has the lock by another strategy
	upgrade      *script.Refusal // of one of them
	othersWon    bool            // true if a refusal says that its holder's token is committed, so another client has won
	rtt          time.Duration   // the longest time that a vote took
	failed       []error         // one for each server that gave no vote

	decided      chan struct{} // closed by run
	won          bool          // set before decided is closed, and read after it
	token        int64         // to commit, like won: the greatest that was counted, or reentryToken
	reentryToken int64         // the greatest committed token of reentries; used by the goroutine of run only
	commits      chan error    // nil for each server that has committed; used only if the round is won
}

// vote is the answer of one server. If err is not nil, there was none, and the Result has no meaning.
type vote struct {
	node *node
	script.Result
	took time.Duration
	err  error
}

// newVoteRound returns a round that has asked no server yet. It copies the hold, because the round outlives the use of h.
func newVoteRound(q *Strategy, h *script.Hold) *voteRound {
	n := len(q.nodes)
	return &voteRound{
		quorum: q, request: *h, votes: make(chan vote, n), pending: make(map[*node]bool), holders: make(map[string]int),
		decided: make(chan struct{}), commits: make(chan error, n),
	}
}

// run requests the hold from all servers concurrently, and returns as soon as the decision of a majority is known. It
// returns true if the round is won. Then the caller must call awaitCommits. It returns false if the round is lost, or if ctx
// has ended.
//
// If oneFirst is true, it asks one server after the other until one grants, and then all others at once. It gives up if the
// votes are conclusive before. Not after the first refusal, because a minority may have a hold of a crashed client, or of one
// that has lost its round. That would keep all clients from the lock.
func (b *voteRound) run(ctx context.Context, oneFirst bool) (won bool) {
	defer func() {
		b.won = won
		close(b.decided)
	}()
	apart := transport.WithoutEnd(ctx)
	nodes := b.quorum.nodes
	if oneFirst {
		nodes = b.fixedOrder()
		for b.granted == 0 && !b.conclusive() && len(nodes) > 0 {
			if b.refused() {
				// The client that has the last server is asking all others now. Its requests must come first.
				keepalive.Pause(ctx, splitBackoff(1, b.rtt), nil, nil)
			}
			b.ask(apart, nodes[0])
			nodes = nodes[1:]
			if !b.count(ctx) {
				return false
			}
		}
		if b.granted == 0 {
			return false
		}
	}
	for _, v := range nodes {
		b.ask(apart, v)
	}
	for b.countingGrants() < b.quorum.majority || b.mayBeReentry() {
		if !b.winnable() && b.conclusive() || !b.count(ctx) {
			return false
		}
	}
	if b.reentries >= b.quorum.majority { // the owner has the lock without a gap, so its token stays
		b.token = b.reentryToken
	}
	return !b.reentryUnclear()
}

// countingGrants returns the number of grants that count towards a majority. A re-entry under the parent does not count
// together with new grants. An example with five servers:
//
//  1. The parent has lost its majority, so its lease ends. Only s1 and s2 still have it.
//  2. Goroutines A and B ask with the context of that lease, so both ask as its owner, under the parent.
//  3. s1 and s2 grant both a re-entry. s3 is free and grants A, s4 is free and grants B.
//
// With three servers each, both would have the lock.
func (b *voteRound) countingGrants() int {
	if b.request.ParentID == "" {
		return b.granted
	}
	return max(b.parentGrants, b.granted-b.parentGrants)
}

// reentryUnclear returns true if the owner holds the lock with a committed token on some servers, and perhaps on a
// majority. Then the round is neither won nor busy, and must be repeated. An example with five servers:
//
//  1. The owner holds the lock on s1, s2 and s3, with the token 10. s4 and s5 were down, and are back.
//  2. A re-entry is granted by s1 and s2 with the token 10, and by s4 and s5 anew with 11. The answer of s3 is lost.
//
// If 11 were committed, the resource would refuse the work under the outer lease, whose token is 10.
func (b *voteRound) reentryUnclear() bool {
	return b.reentries > 0 && b.reentries < b.quorum.majority &&
		b.reentries+len(b.failed)+len(b.pending) >= b.quorum.majority
}

// winnable returns true if a majority is still possible with the votes that are worth waiting for. After a refusal, the votes
// of suspect servers are not, because until they time out, the minority that was granted would keep all other clients from a
// majority.
func (b *voteRound) winnable() bool {
	hopes := 0
	for _, troubled := range b.pending {
		if !troubled || !b.refused() {
			hopes++
		}
	}
	return b.countingGrants()+hopes >= b.quorum.majority
}

// refused returns true if a server has refused, because another owner has the lock there.
func (b *voteRound) refused() bool { return len(b.holderTTLs) > 0 }

// mayBeReentry returns true if votes that are still to come can show that the owner already holds the lock on a majority. Then
// run waits for them, even if a majority has granted the hold, because if they show that, no other owner held the lock
// meanwhile, so the token stays. Servers that were down may have granted the lock anew with greater tokens.
func (b *voteRound) mayBeReentry() bool {
	return b.reentries < b.quorum.majority && b.reentries+len(b.pending) >= b.quorum.majority
}

// fixedOrder returns the servers in the order of NewRedlock, with suspect servers last. The order is fixed because clients that
// begin with the same server do not split the votes. Other orders are safe too, and only make splits more likely.
func (b *voteRound) fixedOrder() []*node {
	var others, suspects []*node
	for _, v := range b.quorum.nodes {
		if v.suspect() {
			suspects = append(suspects, v)
		} else {
			others = append(others, v)
		}
	}
	return append(others, suspects...)
}

// count waits for one vote and records it. It returns false if ctx ends before there is one.
func (b *voteRound) count(ctx context.Context) bool {
	select {
	case v := <-b.votes:
		delete(b.pending, v.node)
		switch {
		case v.err != nil:
			b.failed = append(b.failed, v.err)
			return true
		case v.Result.Granted:
			b.granted++
			b.token = max(b.token, v.Token)
			if v.ByParent {
				b.parentGrants++
			}
			if v.TokenCommitted {
				b.reentries++
				b.reentryToken = max(b.reentryToken, v.Token)
			}
		default:
			b.holderTTLs = append(b.holderTTLs, v.HolderTTL)
			b.holders[v.Holder]++
			b.othersWon = b.othersWon || v.Committed
			if v.Refused != nil {
				b.upgrades, b.upgrade = b.upgrades+1, v.Refused
			}
		}
		b.rtt = max(b.rtt, v.took)
		return true
	case <-ctx.Done():
		return false
	}
}

// ask starts the goroutine of one server: it sends the request, and acts on the decision of the round. ctx must not end with
// the caller's, because the release of a lost round is sent even if the caller has left.
func (b *voteRound) ask(ctx context.Context, v *node) {
	b.pending[v] = v.suspect()
	running := b.quorum.env.Go(func(context.Context) {
		claim := b.request
		got := vote{node: v}
		began := b.quorum.env.Now()
		got.Result, got.err = ask(ctx, v, claim.TTL, func(ctx context.Context) (script.Result, error) {
			return v.Acquire(ctx, &claim, script.Wanted{})
		})
		got.took = b.quorum.env.Now().Sub(began)
		b.votes <- got
		<-b.decided
		b.finishNode(ctx, got, &claim)
	})
	if !running {
		b.votes <- vote{node: v, err: b.quorum.env.Closed}
	}
}

// finishNode commits the token or releases the hold, by the decision of the round. If the round is won, it sends one value
// on commits, whatever the vote was. A server that has the committed token of a re-entry already needs no commit. A server
// without an answer is left alone: if it has the hold, that belongs to the lease. If the round is lost, such a server is
// released.
//
// The release is silent if another client has won. An example with the holder A, waiters B and C, and s1, which has lost the hold
// of A:
//
//  1. B asks. s1 grants, and s2 and s3 refuse. B releases s1, which notifies C that the lock is free.
//  2. C asks, with the same result. Its release wakes B, and so on, as fast as servers answer, until A has repaired s1.
func (b *voteRound) finishNode(ctx context.Context, got vote, claim *script.Hold) {
	switch {
	case b.won && got.Result.Granted && !(got.TokenCommitted && got.Token == b.token):
		b.commits <- got.node.commitToken(ctx, claim, b.token, false)
	case b.won && got.Result.Granted:
		b.commits <- nil
	case b.won:
		b.commits <- cmp.Or(got.err, errNotCommitted)
	case got.Result.Granted, transport.MayHaveRun(got.err):
		claim.Silent = b.othersWon // run has ended, and does not write it any more
		_, _ = got.node.releaseHold(ctx, claim, script.NeverHeld)
	}
}

// awaitCommits waits until a majority has committed the token. It returns an Error if a majority cannot any more, and
// ErrNotAnswered if ctx ends before. Then the caller must release the hold on all servers, because the goroutines of a round
// that was won do not.
//
// A majority, because every later majority shares a server with this one, and that server draws a greater token.
func (b *voteRound) awaitCommits(ctx context.Context) error {
	var errs []error
	for committed := 0; committed < b.quorum.majority; {
		select {
		case err := <-b.commits:
			if err == nil {
				committed++
				continue
			}
			errs = append(errs, err)
			if len(errs) > len(b.quorum.nodes)-b.quorum.majority {
				return &Error{answered: committed, of: len(b.quorum.nodes), errs: errs}
			}
		case <-ctx.Done():
			return transport.ErrNotAnswered
		}
	}
	return nil
}

// busy returns true if a majority has voted. If the round is not won, the lock is then held or contested.
func (b *voteRound) busy() bool { return b.granted+len(b.holderTTLs) >= b.quorum.majority }

// conclusive returns true if it is certain that the lock is held or contested, or that too few servers answer. Until then, a
// round that cannot be won waits for more votes, because a refusal must not be returned as an outage, nor an outage as a
// refusal.
func (b *voteRound) conclusive() bool {
	return b.busy() || len(b.failed) > len(b.quorum.nodes)-b.quorum.majority
}

// err returns the error of a round in which too few servers have answered, or a re-entry is unclear.
func (b *voteRound) err() error {
	return &Error{answered: b.granted + len(b.holderTTLs), of: len(b.quorum.nodes), errs: b.failed}
}

// holderTTL returns the time until a majority is free, if no holder renews. It is negative if there is no end. It returns
// nodeTimeout if enough servers have granted, but not together, see countingGrants: their release comes first.
func (b *voteRound) holderTTL() time.Duration {
	// As uint64, a negative TTL is greater than all others.
	slices.SortFunc(b.holderTTLs, func(x, y time.Duration) int { return cmp.Compare(uint64(x), uint64(y)) })
	refusals := b.quorum.majority - b.granted // that would have to be grants
	if refusals <= 0 || len(b.holderTTLs) == 0 {
		return b.quorum.nodeTimeout(b.request.TTL)
	}
	return b.holderTTLs[min(refusals, len(b.holderTTLs))-1]
}

// holder returns the owner that has the lock on most servers; "" if unknown.
func (b *voteRound) holder() (most string) {
	for owner, servers := range b.holders {
		if best := b.holders[most]; owner != "" && (most == "" || servers > best || servers == best && owner < most) {
			most = owner
		}
	}
	return most
}

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

// RenewAll implements script.Strategy: it renews on every server. A hold is renewed if a majority confirms. Its validity counts
// from the first request of that majority. The first one counts, because from then on, that server may let the hold expire.
//
// A server that has lost the hold, by a restart or a partition, is granted it again (read repair). Such a server counts only
// from the next renewal on. An example with the holder A, the servers s1 to s3, and s3 down:
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

// count records one answer, and acts on what follows from it. It calls Done without holding mu, because Done takes the mutex of
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

// add counts one answer and returns what follows. An error that is a keepalive.Cause is an answer: the server does not have the
// hold. Any other error says nothing. Even if such errors leave no majority, add waits for all answers, because the lease is
// valid until its deadline anyway, and a later answer may say that the hold is lost.
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
