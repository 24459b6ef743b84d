package redlock

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/lifecycle"
	"github.com/holdfast-go/holdfast/core/internal/lockscript"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// voteRound requests one hold from all servers of a Redlock, once. Each request has a goroutine, which also acts on the
// decision. If the round is won, it commits the token of the majority to its server. If it is lost, it releases a hold
// that its server has granted, or may have granted.
type voteRound struct {
	quorum  *Quorum
	request lockscript.Hold
	votes   chan vote

	// Used by the goroutine that counts only, until the round is decided.
	pending      map[*node]bool // true if the server has lately failed to answer
	granted      int
	reentries    int             // those of them that the owner has held before, with a token that was agreed on
	parentGrants int             // those of them that grant it because the hold's parent is in
	holderTTLs   []time.Duration // of the servers that refused
	othersWon    bool            // one of them says that another client has won
	rtt          time.Duration   // the longest time that an answer took
	failed       []error

	decided      chan struct{}
	won          bool  // set before decided is closed
	token        int64 // the same
	reentryToken int64 // the token with which it was entered
	commits      chan error
}

// vote is the answer of one server.
type vote struct {
	node *node
	lockscript.Result
	took time.Duration
	err  error
}

func newVoteRound(q *Quorum, h *lockscript.Hold) *voteRound {
	n := len(q.nodes)
	return &voteRound{
		quorum: q, request: *h, votes: make(chan vote, n), pending: make(map[*node]bool),
		decided: make(chan struct{}), commits: make(chan error, n),
	}
}

// run requests the hold from all servers concurrently, and returns as soon as the decision of a majority is known. It
// returns true if the round is won.
//
// With oneFirst it asks one server after the other, until one grants or a majority has refused, and then all others.
// Why go on after a refusal: a minority may have a hold of a crashed client, or of one that has lost its round.
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
				lifecycle.Pause(ctx, splitBackoff(1, b.rtt), nil, nil) // the client that holds this one is asking the others now
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
	if b.reentries >= b.quorum.majority {
		b.token = b.reentryToken
	}
	return !b.reentryUnclear()
}

// countingGrants returns the number of grants that count. A re-entry under the parent does not count together with new
// grants. Why: a parent without a majority has ended, but its minority would grant a re-entry to every hold under it.
func (b *voteRound) countingGrants() int {
	if b.request.ParentID == "" {
		return b.granted
	}
	return max(b.parentGrants, b.granted-b.parentGrants)
}

// reentryUnclear reports whether the owner holds the lock on some servers, and perhaps on a majority that has not answered
// in full. Then the round must be repeated. Why: if it is a re-entry, the committed token must not be replaced.
func (b *voteRound) reentryUnclear() bool {
	return b.reentries > 0 && b.reentries < b.quorum.majority &&
		b.reentries+len(b.failed)+len(b.pending) >= b.quorum.majority
}

// winnable reports whether a majority is possible. After a refusal, suspect servers are not waited for. Why: meanwhile the
// minority that was granted would keep all other clients from a majority.
func (b *voteRound) winnable() bool {
	hopes := 0
	for _, troubled := range b.pending {
		if !troubled || !b.refused() {
			hopes++
		}
	}
	return b.countingGrants()+hopes >= b.quorum.majority
}

func (b *voteRound) refused() bool { return len(b.holderTTLs) > 0 }

// mayBeReentry reports whether more votes can show that the owner already holds the lock on a majority. Then no other owner
// held it meanwhile, and the token stays, although servers that were down before have granted the lock anew.
func (b *voteRound) mayBeReentry() bool {
	return b.reentries < b.quorum.majority && b.reentries+len(b.pending) >= b.quorum.majority
}

// fixedOrder returns the servers in an order that is the same for all clients, with suspect servers last.
func (b *voteRound) fixedOrder() []*node {
	nodes := slices.Clone(b.quorum.nodes)
	suspects := make(map[*node]int)
	for _, v := range nodes {
		if v.suspect() {
			suspects[v] = 1
		}
	}
	slices.SortStableFunc(nodes, func(a, b *node) int { return cmp.Compare(suspects[a], suspects[b]) })
	return nodes
}

// count records one vote. It returns false if ctx ends before there is one.
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
			b.othersWon = b.othersWon || v.TokenCommitted
		}
		b.rtt = max(b.rtt, v.took)
		return true
	case <-ctx.Done():
		return false
	}
}

// ask starts the goroutine of one server: it sends the request, and acts on the decision of the round.
func (b *voteRound) ask(ctx context.Context, v *node) {
	b.pending[v] = v.suspect()
	running := b.quorum.env.Go(func(context.Context) {
		claim := b.request
		got := vote{node: v}
		began := b.quorum.env.Now()
		got.err = v.ask(ctx, claim.TTL, func(ctx context.Context) (err error) {
			got.Result, err = v.Acquire(ctx, &claim)
			return err
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

// finishNode commits the token or releases the hold, by the decision of the round. A server that has refused has nothing to
// release.
func (b *voteRound) finishNode(ctx context.Context, got vote, claim *lockscript.Hold) {
	switch o := transport.Classify(got.err); {
	case b.won && got.Result.Granted && !(got.TokenCommitted && got.Token == b.token):
		b.commits <- got.node.commitToken(ctx, claim, b.token, false)
	case b.won && got.Result.Granted:
		b.commits <- nil
	case b.won:
		b.commits <- cmp.Or(got.err, errNotCommitted)
	case got.Result.Granted, o == transport.Unknown, o == transport.Failed:
		_, _ = got.node.releaseHold(ctx, claim, lockscript.NeverHeld)
	}
}

// awaitCommits waits until a majority has committed the token. Every later majority shares a server with this one, so it
// draws a greater token.
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

// busy reports whether enough servers have answered to say that the lock is held, or contested.
func (b *voteRound) busy() bool { return b.granted+len(b.holderTTLs) >= b.quorum.majority }

// conclusive reports whether it is certain that the lock is held or contested, or that too few servers answer. Why: a
// refusal must not be reported as an outage, nor an outage as a refusal.
func (b *voteRound) conclusive() bool {
	return b.busy() || len(b.failed) > len(b.quorum.nodes)-b.quorum.majority
}

func (b *voteRound) err() error {
	return &Error{answered: b.granted + len(b.holderTTLs), of: len(b.quorum.nodes), errs: b.failed}
}

// holderTTL returns the time until a majority is free, if no holder renews. It is negative if there is no end.
func (b *voteRound) holderTTL() time.Duration {
	slices.SortFunc(b.holderTTLs, func(x, y time.Duration) int {
		return cmp.Or(cmp.Compare(endless(x), endless(y)), cmp.Compare(x, y))
	})
	refusals := b.quorum.majority - b.granted // that would have to be grants
	if refusals <= 0 || len(b.holderTTLs) == 0 {
		return b.quorum.nodeTimeout(b.request.TTL) // the parent's minority has to be given up first
	}
	return b.holderTTLs[min(refusals, len(b.holderTTLs))-1]
}

func endless(left time.Duration) int {
	if left < 0 {
		return 1
	}
	return 0
}
