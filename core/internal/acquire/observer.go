package acquire

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
)

const (
	// pollInterval is how often an observer reads without a message, because messages get lost. It is lengthened by up to
	// half at random, so that observers do not all ask at the same moment.
	pollInterval = 2 * time.Second
	// proclamationGrace is how long a leader that was granted the lock has to write its value before observers get it without.
	proclamationGrace = 250 * time.Millisecond
	// minPollInterval bounds how often an observer reads an election with a very short TTL.
	minPollInterval = 20 * time.Millisecond
)

// Observer reports the leaders of one election to a caller, on the goroutine of the caller.
type Observer struct {
	// Read reads the state.
	Read func(ctx context.Context) (script.Leader, error)
	// Operations are the client's. Each read is one. The observer ends when the client closes.
	Operations *keepalive.Operations
	// Notifications receives a value when the state may have changed.
	Notifications <-chan struct{}
	// Failed is called with the first error, and with the first one after each success.
	Failed func(err error)

	news    news
	failing bool
}

// Run calls tell with the present state, and with each new one, until tell returns false, ctx ends, or the client closes.
func (o *Observer) Run(ctx context.Context, tell func(script.Leader) bool) {
	for ctx.Err() == nil {
		state, ok := o.read(ctx)
		interval := pollInterval
		if ok {
			leader, isNew, wait := o.news.next(state)
			if isNew && (ctx.Err() != nil || !tell(leader)) {
				return
			}
			interval = pollAfter(state, wait)
		} else if o.Operations.IsClosed() {
			return
		}
		keepalive.Pause(ctx, interval+rand.N(interval/2), o.Notifications, o.Operations.Closing)
	}
}

// read reads the state. It returns false if it has failed, or if the client is closing.
func (o *Observer) read(ctx context.Context) (script.Leader, bool) {
	if !o.Operations.Start() {
		return script.Leader{}, false
	}
	defer o.Operations.Finish()
	state, err := o.Read(ctx)
	if err != nil && !o.failing && ctx.Err() == nil {
		o.Failed(err)
	}
	o.failing = err != nil
	return state, err == nil
}

// pollAfter returns the interval until the next read. It ends with the lease of the leader, if that is sooner.
func pollAfter(state script.Leader, wait bool) time.Duration {
	switch {
	case wait:
		return proclamationGrace
	case state.Owner == "" || state.TTL < 0:
		return pollInterval
	}
	return min(max(state.TTL, minPollInterval), pollInterval)
}

// news decides which of the states that an observer reads are new. The zero value has read none.
type news struct {
	told     script.Leader // the last one
	any      bool          // true if told is one
	newest   script.Leader // with the greatest term, and its greatest number; not a vacancy
	heldBack int64         // the term that was held back because it was unproclaimed; 0 for none
}

// next returns what to report of a state, and false if there is nothing to report. A vacancy gets the term of the leader before
// it, so that terms never go back. If it returns wait, the state was held back, and the observer must read again soon.
//
// It drops a leader with a smaller term, or with an older value of the same term, than it has read before: a replica or a
// master that was replaced has answered. It does not know whether a vacancy is as old as that.
//
// It holds an unproclaimed leader back once, because the value follows within a round trip, unless the leader cannot reach
// Redis.
func (n *news) next(l script.Leader) (tell script.Leader, ok, wait bool) {
	switch {
	case l.Owner == "":
		l.Token = n.newest.Token
	case l.Token < n.newest.Token, l.Token == n.newest.Token && l.Number < n.newest.Number:
		return l, false, false
	case l.Number == 0 && n.heldBack != l.Token:
		n.heldBack = l.Token
		return l, false, true
	default:
		n.newest = l
	}
	if n.any && n.told.Owner == l.Owner && n.told.Token == l.Token && n.told.Value == l.Value {
		return l, false, false
	}
	n.told, n.any = l, true
	return l, true, false
}
