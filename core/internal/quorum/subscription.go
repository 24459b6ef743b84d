package quorum

import (
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// subscription subscribes to releases on all servers of a Redlock. The first message of any server notifies.
type subscription struct {
	c    chan struct{} // shared by all subscribers; it holds one value, so messages that come together notify once
	each []*transport.Subscriber
	need int // servers that must have confirmed, for a message to be expected
}

// Subscribe implements script.Strategy. A majority must confirm the subscription. Why: the servers that had granted the
// lock are a majority too, so at least one of them is subscribed when they publish its release.
func (q *Strategy) Subscribe(k script.Keys) script.Subscription {
	e := &subscription{c: make(chan struct{}, 1), need: q.majority}
	for _, v := range q.nodes {
		e.each = append(e.each, v.Subs.SubscribeTo(e.c, k.Channel))
	}
	return e
}

// Notifications implements script.Subscription.
func (e *subscription) Notifications() <-chan struct{} { return e.c }

// Confirmed implements script.Subscription. It becomes false again if connections break.
func (e *subscription) Confirmed() bool {
	confirmed := 0
	for _, l := range e.each {
		if l.Confirmed() {
			confirmed++
		}
	}
	return confirmed >= e.need
}

// StartAsking implements script.Subscription. It returns false, because a release of a Redlock wakes all clients. Why:
// each server might wake another client, and none of them would learn that a majority is free.
func (*subscription) StartAsking() bool { return false }

// Close implements script.Subscription. It ends the subscription on each server.
func (e *subscription) Close() {
	for _, l := range e.each {
		l.Close()
	}
}
