package core

import (
	"context"
	"math/rand/v2"
	"time"
)

// silence is how long a waiter in line does without news before it asks by itself. It hears of its beats meanwhile,
// so only if they fail.
const silence = 3 * beat

// waiter is a request that stands in a line in Redis. It need not ask again: it is told when the lock is its own,
// and its place is kept by beats. But messages get lost and so do places; then it asks.
type waiter struct {
	*request
	line      *inLine
	place     *place
	own       *subscriber // what is said to this waiter
	broadcast *subscriber // what is said to everybody, while that concerns it
}

// stand waits in line.
func (r *request) stand(ctx context.Context, line *inLine) (*Lease, error) {
	w := &waiter{request: r, line: line}
	defer w.leave()
	for {
		channel := line.channel(r.hold.keys)
		if w.own == nil {
			// What is said from now on must not be missed; if nobody of this client listens yet, it will be asked for
			// again once somebody does.
			w.own = line.server.subs.subscribeIfActive(channel, r.hold.id)
		}
		id := r.hold.id
		lease, err := r.ask(ctx)
		if err != errBusy {
			return lease, err
		}
		if id != r.hold.id {
			w.leave()
		}
		if w.own == nil {
			w.own = line.server.subs.subscribe(channel, r.hold.id)
		}
		w.keep()
		if lease, err := w.sit(ctx); lease != nil || err != nil {
			return lease, err
		}
	}
}

// keep takes in that the request was answered: wait in line.
func (w *waiter) keep() {
	w.lined = true
	if w.place == nil {
		w.place = w.line.server.beats.keep(&w.hold, w.standing, w.sentAt)
	} else {
		w.place.stands(w.standing, w.sentAt)
	}
	w.waits(w.standing.before + 1)
}

// leave stops listening and giving signs of life; the place in Redis stays.
func (w *waiter) leave() {
	for _, l := range []*subscriber{w.own, w.broadcast} {
		if l != nil {
			l.close()
		}
	}
	if w.place != nil {
		w.place.leave()
	}
	w.own, w.broadcast, w.place = nil, nil, nil
}

// sit waits until the lock is granted by message, or there is a reason to ask: then it returns neither a lease nor an
// error.
func (w *waiter) sit(ctx context.Context) (*Lease, error) {
	for {
		at := w.place.look()
		w.standing = at.standing
		if at.gone {
			return nil, nil
		}
		var everybody <-chan struct{}
		if l := w.listenToBroadcasts(at.plain && at.before == 0); l != nil {
			everybody = l.C
		}
		timer := time.NewTimer(at.nextLook(w.keeper.now()))
		select {
		case <-w.own.C:
			timer.Stop()
			return w.granted(w.own.lastToken()), nil
		case <-everybody:
			timer.Stop()
			return nil, nil
		case <-w.place.C:
		case <-ctx.Done():
		case <-w.keeper.lifecycle.closing:
		case <-timer.C:
			if w.place.look().askedAt == at.askedAt {
				return nil, nil
			}
		}
		timer.Stop()
		if w.over(ctx) {
			return nil, errTimeUp
		}
	}
}

// listenToBroadcasts starts or stops to listen to what is announced to everybody: what a Mutex or Redisson says when they
// unlock. It is for the first in line only.
func (w *waiter) listenToBroadcasts(listen bool) *subscriber {
	switch {
	case listen && w.broadcast == nil:
		w.broadcast = w.line.server.subs.subscribe(w.hold.keys.channel, "")
	case !listen && w.broadcast != nil:
		w.broadcast.close()
		w.broadcast = nil
	}
	return w.broadcast
}

// nextLook returns how long to wait for news: until beats have failed, or the holder's time is over, which only the
// first in line looks after.
func (p *place) nextLook(now instant) time.Duration {
	look := p.answeredAt.add(silence).sub(now)
	if p.before == 0 && p.left >= 0 {
		// A little after the expiry: Redis counts whole milliseconds.
		look = min(look, p.answeredAt.add(p.left).sub(now)+time.Millisecond+rand.N(4*time.Millisecond))
	}
	return max(look, time.Millisecond)
}

// granted makes a lease of a grant that was told by message; nil if it has to be asked for. The holder's time is
// counted from the sending of the last request that was answered: wait. Since the grant came after that answer, it
// lasts longer than this counts; and a grant which had ended again by then, so that its message is about something
// over, has no greater token than those that answer told of.
func (w *waiter) granted(token int64) *Lease {
	at := w.place.look()
	ttl := min(w.hold.ttl, placeTTL)
	switch {
	case at.last == 0 || token <= at.last:
		return nil // a message from before, or no grant; or that cannot be known
	case w.hold.fixed || w.hold.minHold > 0:
		return nil // their time begins when Redis is asked for it
	case w.hold.ack.wanted():
		return nil // replicas have not acknowledged it yet
	case w.keeper.now() > at.askedAt.add(ttl/2):
		return nil // a renewal might come too late
	}
	lease, err := w.keeper.newLease(w.ctx, w.protocol, w.hold, grant{token, at.askedAt, ttl})
	if err != nil {
		return nil
	}
	return lease
}
