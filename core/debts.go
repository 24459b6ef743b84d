package core

import (
	"context"
	"sync"
	"time"
)

// debts are the releases that one server of a Redlock has not confirmed. They are kept together, because a server that
// is down for a while, beside a majority that is up, misses all of them. A debt is over with the TTL of its hold, which
// the server has forgotten by then.
type debts struct {
	voter *voter

	mu     sync.Mutex
	owed   map[string]debt // by hold id
	paying bool
}

type debt struct {
	hold  hold
	what  usage
	until instant
}

// dunning is how often a server that owes something is asked again.
const dunning = 250 * time.Millisecond

// owe sees to it that the hold is taken out of the server as soon as that answers.
func (d *debts) owe(h hold, what usage) {
	k := d.voter.quorum.keeper
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.owed == nil {
		d.owed = make(map[string]debt)
	}
	if _, known := d.owed[h.id]; known {
		return
	}
	d.owed[h.id] = debt{hold: h, what: what, until: k.now().add(max(h.ttl, h.minHold))}
	if !d.paying {
		d.paying = k.background(d.pay)
	}
}

// pay asks for one release after the other, and while they are answered without a pause.
func (d *debts) pay(ctx context.Context) {
	closing := d.voter.quorum.keeper.tasks.closing
	for {
		next, more := d.next()
		if !more {
			return
		}
		err := d.voter.ask(ctx, next.hold.ttl, func(ctx context.Context) error {
			_, err := d.voter.release(ctx, &next.hold, next.what)
			return err
		})
		if err == nil || !curable(err) {
			d.forgive(next.hold.id)
			continue
		}
		if ctx.Err() != nil || closed(closing) {
			d.forgive("")
			return
		}
		d.expire()
		pause(ctx, dunning, nil, closing)
	}
}

// next returns one of the debts; if there is none, the paying has ended.
func (d *debts) next() (next debt, more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, owed := range d.owed {
		return owed, true
	}
	d.paying = false
	return debt{}, false
}

// expire drops the debts that are over, all of them each time: a server that is down for hours misses more and more.
func (d *debts) expire() {
	now := d.voter.quorum.keeper.now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, owed := range d.owed {
		if owed.until <= now {
			delete(d.owed, id)
		}
	}
}

// forgive drops a debt; "" drops all, and ends the paying.
func (d *debts) forgive(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.owed, id)
	if id == "" {
		d.owed, d.paying = nil, false
	}
}
