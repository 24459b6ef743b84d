package core

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// ballot asks the servers of a Redlock for one hold, once. Each server's answer is followed up by the one who brought
// it, when the ballot is decided: if it is won, the server gets the token that all agree on; if it is lost, a hold
// that the server has granted, or may have granted, is taken out again.
type ballot struct {
	quorum *quorum
	claim  hold
	votes  chan vote

	// Of the one who counts, until it is decided.
	pending map[*voter]bool // true if the server has lately failed to answer
	granted int
	entered int             // those of them that the owner has held before, with a token that was agreed on
	by      int             // those of them that grant it because the hold's parent is in
	lefts   []time.Duration // of those who refused
	taken   bool            // one of them says that somebody else has won
	trip    time.Duration   // the longest time that an answer took
	failed  []error

	decided chan struct{}
	won     bool  // set before decided is closed
	token   int64 // the same
	before  int64 // the token with which it was entered
	settled chan error
}

// vote is what one server says.
type vote struct {
	voter *voter
	answer
	took time.Duration
	err  error
}

func newBallot(q *quorum, h *hold) *ballot {
	n := len(q.voters)
	return &ballot{
		quorum: q, claim: *h, votes: make(chan vote, n), pending: make(map[*voter]bool),
		decided: make(chan struct{}), settled: make(chan error, n),
	}
}

// hold asks all servers at once, or one of them first, and returns as soon as it is clear whether a majority grants.
// Should the first refuse, the next is asked, until a majority has refused: a minority may hold what somebody who
// crashed has left there, or what others have locked on these servers only.
func (b *ballot) hold(ctx context.Context, oneFirst bool) (won bool) {
	defer func() {
		b.won = won
		close(b.decided)
	}()
	apart := alone(ctx)
	voters := b.quorum.voters
	if oneFirst {
		voters = b.inOrder()
		for b.granted == 0 && !b.clear() && len(voters) > 0 {
			if b.refused() {
				pause(ctx, breath(1, b.trip), nil, nil) // whoever has got that one is asking for the others now
			}
			b.ask(apart, voters[0])
			voters = voters[1:]
			if !b.count(ctx) {
				return false
			}
		}
		if b.granted == 0 {
			return false
		}
	}
	for _, v := range voters {
		b.ask(apart, v)
	}
	for b.best() < b.quorum.majority || b.mayBeEntered() {
		if !b.open() && b.clear() || !b.count(ctx) {
			return false
		}
	}
	if b.entered >= b.quorum.majority {
		b.token = b.before
	}
	return !b.doubtful()
}

// best returns how many votes count. Those of servers where the parent is in do not count together with those that have
// granted the lock anew: a parent that is not in at a majority is over, and its minority lets in all who come with it.
func (b *ballot) best() int {
	if b.claim.parent == nil {
		return b.granted
	}
	return max(b.by, b.granted-b.by)
}

// doubtful reports whether the owner is in on some servers, and may be on a majority, but for servers that have not
// answered. Then the lease has the token that the servers agreed on, which another one must not replace; it is not known
// to have it, so the servers have to be asked again.
func (b *ballot) doubtful() bool {
	return b.entered > 0 && b.entered < b.quorum.majority &&
		b.entered+len(b.failed)+len(b.pending) >= b.quorum.majority
}

// open reports whether a majority is possible. Once somebody has refused, those who have lately failed to answer are not
// waited for: meanwhile what the others have granted would keep everybody from winning.
func (b *ballot) open() bool {
	hopes := 0
	for _, troubled := range b.pending {
		if !troubled || !b.refused() {
			hopes++
		}
	}
	return b.best()+hopes >= b.quorum.majority
}

func (b *ballot) refused() bool { return len(b.lefts) > 0 }

// mayBeEntered reports whether more votes can tell that the owner is in already. If a majority has the owner, nobody
// else was in meanwhile, and the token stays, although servers that were away then have granted the lock anew.
func (b *ballot) mayBeEntered() bool {
	return b.entered < b.quorum.majority && b.entered+len(b.pending) >= b.quorum.majority
}

// inOrder returns the servers in an order that is the same for all callers, except that those which have just failed
// to answer come last.
func (b *ballot) inOrder() []*voter {
	voters := slices.Clone(b.quorum.voters)
	shy := make(map[*voter]int)
	for _, v := range voters {
		if v.troubled() {
			shy[v] = 1
		}
	}
	slices.SortStableFunc(voters, func(a, b *voter) int { return cmp.Compare(shy[a], shy[b]) })
	return voters
}

// count takes in one vote; it reports false if ctx ends before.
func (b *ballot) count(ctx context.Context) bool {
	select {
	case v := <-b.votes:
		delete(b.pending, v.voter)
		switch {
		case v.err != nil:
			b.failed = append(b.failed, v.err)
			return true
		case v.answer.granted:
			b.granted++
			b.token = max(b.token, v.token)
			if v.entered {
				b.by++
			}
			if v.settled {
				b.entered++
				b.before = max(b.before, v.token)
			}
		default:
			b.lefts = append(b.lefts, v.holderTTL)
			b.taken = b.taken || v.settled
		}
		b.trip = max(b.trip, v.took)
		return true
	case <-ctx.Done():
		return false
	}
}

// ask sends the request to one server, and sees to what follows from its answer.
func (b *ballot) ask(ctx context.Context, v *voter) {
	b.pending[v] = v.troubled()
	running := b.quorum.keeper.background(func(context.Context) {
		claim := b.claim
		got := vote{voter: v}
		began := b.quorum.keeper.now()
		got.err = v.ask(ctx, claim.ttl, func(ctx context.Context) (err error) {
			got.answer, err = v.acquire(ctx, &claim)
			return err
		})
		got.took = b.quorum.keeper.now().sub(began)
		b.votes <- got
		<-b.decided
		b.follow(ctx, got, &claim)
	})
	if !running {
		b.votes <- vote{voter: v, err: ErrClosed}
	}
}

// follow does what the decision asks for. A server that refused has nothing to release: it is its script that says so.
func (b *ballot) follow(ctx context.Context, got vote, claim *hold) {
	switch o := classify(got.err); {
	case b.won && got.answer.granted && !(got.settled && got.token == b.token):
		b.settled <- got.voter.settle(ctx, claim, b.token, false)
	case b.won && got.answer.granted:
		b.settled <- nil
	case b.won:
		b.settled <- cmp.Or(got.err, errTaken)
	case got.answer.granted, o == unknown, o == failed:
		_, _ = got.voter.letGo(ctx, claim, neverHeld)
	}
}

// settle returns once a majority remembers the token, so that every later majority has one who knows a greater one.
func (b *ballot) settle(ctx context.Context) error {
	var errs []error
	for settled := 0; settled < b.quorum.majority; {
		select {
		case err := <-b.settled:
			if err == nil {
				settled++
				continue
			}
			errs = append(errs, err)
			if len(errs) > len(b.quorum.voters)-b.quorum.majority {
				return &quorumError{answered: settled, of: len(b.quorum.voters), errs: errs}
			}
		case <-ctx.Done():
			return errNotAnswered
		}
	}
	return nil
}

// busy reports whether enough servers have answered to say that the lock is held, or contested.
func (b *ballot) busy() bool { return b.granted+len(b.lefts) >= b.quorum.majority }

// clear reports whether more votes could not change that: a defeat must not be taken for an outage, nor the other way
// round.
func (b *ballot) clear() bool {
	return b.busy() || len(b.failed) > len(b.quorum.voters)-b.quorum.majority
}

func (b *ballot) err() error {
	return &quorumError{answered: b.granted + len(b.lefts), of: len(b.quorum.voters), errs: b.failed}
}

// left is when a majority could be free, if nobody renews. Negative: it has no end.
func (b *ballot) left() time.Duration {
	slices.SortFunc(b.lefts, func(x, y time.Duration) int {
		return cmp.Or(cmp.Compare(endless(x), endless(y)), cmp.Compare(x, y))
	})
	refusals := b.quorum.majority - b.granted // that would have to be grants
	if refusals <= 0 || len(b.lefts) == 0 {
		return b.quorum.patience(b.claim.ttl) // the parent's minority has to be given up first
	}
	return b.lefts[min(refusals, len(b.lefts))-1]
}

func endless(left time.Duration) int {
	if left < 0 {
		return 1
	}
	return 0
}
