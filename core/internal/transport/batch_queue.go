package transport

import (
	"slices"
	"sync"
	"time"
)

const (
	// maxCommandsInFlight is how many round trips may be in flight before further commands are batched. Why so few: a
	// command that waits a moment for a batch costs less than a system call of its own.
	maxCommandsInFlight = 4
	// maxRenewalsInFlight is the same for renewals, for which no caller waits.
	maxRenewalsInFlight = 2
	// MaxBatch bounds the commands of one round trip.
	MaxBatch = 256
	// StallTimeout is how long a batch may be in flight before its sender no longer counts. Why: on a dead connection
	// go-redis waits for its whole read timeout, and the commands in the queue must not wait with it.
	StallTimeout = 250 * time.Millisecond
)

// batchQueue sends commands in batches, with a bounded number of batches in flight (group commit). Commands that arrive
// meanwhile are queued and sent together by the next free sender. So batches grow with the load, and a single command
// never waits.
type batchQueue struct {
	maxSenders int
	send       func([]*Command)

	mu         sync.Mutex
	queue      []*Command
	senders    map[*sender]struct{} // those that count: in flight, and not stalled
	stallTimer *time.Timer          // set while commands are queued and all senders are busy
	reserved   *sender              // for a caller on the direct path, see direct.go; nil if there is none
	spare      *sender              // memory for the next reserved one
}

// sender is a goroutine that sends batches until the queue is empty.
type sender struct {
	// Of the present batch; guarded by the queue's mutex.
	sentAt     time.Time
	ackTimeout time.Duration // of WAIT, which comes on top of StallTimeout
}

func newBatchQueue(limit int, send func([]*Command)) *batchQueue {
	return &batchQueue{maxSenders: limit, send: send, senders: make(map[*sender]struct{})}
}

func (l *batchQueue) submit(calls ...*Command) {
	l.mu.Lock()
	l.queue = append(l.queue, calls...)
	l.dispatchLocked()
	l.mu.Unlock()
}

// dispatchLocked starts a sender if commands are queued and one more may run. Otherwise it sets the stall timer.
func (l *batchQueue) dispatchLocked() {
	switch {
	case len(l.queue) == 0:
	case len(l.senders) < l.maxSenders:
		c := &sender{sentAt: time.Now()}
		l.senders[c] = struct{}{}
		go l.run(c)
	case l.stallTimer == nil:
		l.stallTimer = time.AfterFunc(StallTimeout, l.dropStalled)
	}
}

// tryReserve reserves the queue for a caller that sends a command itself. It returns false if another command is queued
// or in flight. If it returns true, the caller counts as a sender and must call unreserve.
func (l *batchQueue) tryReserve() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reserved != nil || len(l.senders) > 0 || len(l.queue) > 0 {
		return false
	}
	if l.spare == nil {
		l.spare = new(sender)
	}
	l.reserved, l.spare = l.spare, nil
	l.reserved.sentAt, l.reserved.ackTimeout = time.Now(), 0
	l.senders[l.reserved] = struct{}{}
	return true
}

// unreserve ends a reservation of tryReserve.
func (l *batchQueue) unreserve() {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.senders, l.reserved)
	l.reserved, l.spare = nil, l.reserved
	l.dispatchLocked()
}

// dropStalled stops counting the senders whose batch has stalled, so that others may start.
func (l *batchQueue) dropStalled() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stallTimer = nil
	for c := range l.senders {
		if time.Since(c.sentAt) >= StallTimeout+c.ackTimeout {
			delete(l.senders, c)
		}
	}
	l.dispatchLocked()
}

func (l *batchQueue) run(c *sender) {
	for {
		batch := l.nextBatch(c)
		if len(batch) == 0 {
			return
		}
		l.send(batch)
	}
}

// nextBatch takes the next batch out of the queue. It is empty if the queue is, or if c was dropped as stalled: then
// the sender must end.
func (l *batchQueue) nextBatch(c *sender) []*Command {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, counts := l.senders[c]; !counts {
		return nil
	}
	n := 0
	var batch []*Command
	for ; n < len(l.queue) && len(batch) < MaxBatch; n++ {
		if l.queue[n].state.CompareAndSwap(commandQueued, commandSent) {
			batch = append(batch, l.queue[n])
		}
	}
	l.queue = slices.Delete(l.queue, 0, n)
	if len(batch) == 0 {
		delete(l.senders, c)
		return nil
	}
	c.sentAt, c.ackTimeout = time.Now(), strictestAck(batch).Timeout
	l.dispatchLocked() // of a queue longer than a batch, others may take the rest
	return batch
}
