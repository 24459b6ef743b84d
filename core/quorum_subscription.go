package core

// quorumSubscription subscribes to releases on all servers of a Redlock. The first message of any server notifies.
type quorumSubscription struct {
	c    chan struct{}
	each []*subscriber
	need int // subscriptions to be confirmed, for a message to be expected
}

func (q *quorum) subscribe(k keys) releaseSubscription {
	e := &quorumSubscription{c: make(chan struct{}, 1), need: q.majority}
	for _, v := range q.nodes {
		e.each = append(e.each, v.server.subs.subscribeTo(e.c, k.channel))
	}
	return e
}

func (*quorum) subscribeIfActive(keys) releaseSubscription { return nil }

func (e *quorumSubscription) notifications() <-chan struct{} { return e.c }

func (e *quorumSubscription) confirmed() bool {
	confirmed := 0
	for _, l := range e.each {
		if l.confirmed() {
			confirmed++
		}
	}
	return confirmed >= e.need
}

func (*quorumSubscription) startAsking() bool { return false }

func (e *quorumSubscription) close() {
	for _, l := range e.each {
		l.close()
	}
}
