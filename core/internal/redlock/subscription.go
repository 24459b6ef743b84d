package redlock

import (
	"github.com/holdfast-go/holdfast/core/internal/pubsub"

	"github.com/holdfast-go/holdfast/core/internal/lockscript"
)

// quorumSubscription subscribes to releases on all servers of a Redlock. The first message of any server notifies.
type quorumSubscription struct {
	c    chan struct{}
	each []*pubsub.Subscriber
	need int // subscriptions to be confirmed, for a message to be expected
}

// Subscribe implements lockscript.Strategy.
func (q *Quorum) Subscribe(k lockscript.Keys) lockscript.Subscription {
	e := &quorumSubscription{c: make(chan struct{}, 1), need: q.majority}
	for _, v := range q.nodes {
		e.each = append(e.each, v.Subs.SubscribeTo(e.c, k.Channel))
	}
	return e
}

// SubscribeIfActive returns nil.
func (*Quorum) SubscribeIfActive(lockscript.Keys) lockscript.Subscription { return nil }

func (e *quorumSubscription) Notifications() <-chan struct{} { return e.c }

func (e *quorumSubscription) Confirmed() bool {
	confirmed := 0
	for _, l := range e.each {
		if l.Confirmed() {
			confirmed++
		}
	}
	return confirmed >= e.need
}

func (*quorumSubscription) StartAsking() bool { return false }

func (e *quorumSubscription) Close() {
	for _, l := range e.each {
		l.Close()
	}
}
