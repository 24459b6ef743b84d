package transport

import (
	"slices"
	"sync"
	"time"
)

const (
	// maxCommandsInFlight is how many batches of commands may be in flight at a server. Why so few: a command that waits a
	// moment for the next batch costs less than a system call of its own.
	maxCommandsInFlight = 4
	// maxRenewalsInFlight is the same for renewals. It is smaller because no caller waits for them.
	maxRenewalsInFlight = 2
	// MaxBatch bounds the commands of one batch, so that one batch does not hold a server or a connection for long.
	MaxBatch = 256
	// StallTimeout is how long a batch may be in flight before its sender no longer counts. Why: on a dead connection
	// go-redis waits for its whole read timeout, and the commands in the queue must not wait with it.
	StallTimeout = 250 * time.Millisecond
)

// batchQueue sends commands in batches, with a bounded number of batches in flight (group commit). Commands that arrive
// meanwhile are queued, and the next free sender sends them together. So batches grow with the load. A command that finds
// the queue empty and a sender free never waits.
type batchQueue struct {
	maxSenders int
	send       func([]*Command) // returns when all commands of the batch were answered

	mu sync.Mutex

	// Guarded by mu.
	queue      []*Command
	senders    map[*sender]struct{} // those that count: in flight, and not stalled
	stallTimer *time.Timer          // set while commands are queued and all senders are busy
	reserved   *sender              // for a caller on the direct path, see direct.go; nil if there is none
	spare      *sender              // memory for the next reserved one; nil if that is in use
}

// sender is a goroutine that sends batches until the queue is empty.
type sender struct {
	// Of the present batch. Guarded by the mutex of the queue.
	sentAt     time.Time
	ackTimeout time.Duration // of WAIT, which comes on top of StallTimeout
}

func newBatchQueue(maxSenders int, send func([]*Command)) *batchQueue {
	return &batchQueue{maxSenders: maxSenders, send: send, senders: make(map[*sender]struct{})}
}

// submit queues commands and starts a sender if one is free. It does not wait for answers.
func (q *batchQueue) submit(commands ...*Command) {
	q.mu.Lock()
	q.queue = append(q.queue, commands...)
	q.dispatchLocked()
	q.mu.Unlock()
}

// dispatchLocked starts a sender if commands are queued and one more may run. Otherwise it sets the stall timer.
func (q *batchQueue) dispatchLocked() {
	switch {
	case len(q.queue) == 0:
	case len(q.senders) < q.maxSenders:
		s := &sender{sentAt: time.Now()}
		q.senders[s] = struct{}{}
		go q.run(s)
	case q.stallTimer == nil:
		q.stallTimer = time.AfterFunc(StallTimeout, q.dropStalled)
	}
}

// tryReserve reserves the queue for a caller that sends a command itself. It returns false if another command is queued
// or in flight. If it returns true, the caller counts as a sender and must call unreserve.
func (q *batchQueue) tryReserve() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.reserved != nil || len(q.senders) > 0 || len(q.queue) > 0 {
		return false
	}
	if q.spare == nil {
		q.spare = new(sender)
	}
	q.reserved, q.spare = q.spare, nil
	q.reserved.sentAt, q.reserved.ackTimeout = time.Now(), 0
	q.senders[q.reserved] = struct{}{}
	return true
}

// unreserve ends a reservation of tryReserve.
func (q *batchQueue) unreserve() {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.senders, q.reserved)
	q.reserved, q.spare = nil, q.reserved
	q.dispatchLocked()
}

// dropStalled stops counting the senders whose batch has stalled, so that others may start. A dropped sender ends when its
// batch is answered.
func (q *batchQueue) dropStalled() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stallTimer = nil
	for s := range q.senders {
		if time.Since(s.sentAt) >= StallTimeout+s.ackTimeout {
			delete(q.senders, s)
		}
	}
	q.dispatchLocked()
}

// run sends batches until the queue is empty, or until s was dropped.
func (q *batchQueue) run(s *sender) {
	for {
		batch := q.nextBatch(s)
		if len(batch) == 0 {
			return
		}
		q.send(batch)
	}
}

// nextBatch takes the next batch out of the queue, without the commands that were withdrawn. If it returns an empty batch,
// the sender must end: the queue is empty, or s was dropped as stalled.
func (q *batchQueue) nextBatch(s *sender) []*Command {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, counts := q.senders[s]; !counts {
		return nil
	}
	n := 0
	var batch []*Command
	for ; n < len(q.queue) && len(batch) < MaxBatch; n++ {
		if q.queue[n].state.CompareAndSwap(commandQueued, commandSent) {
			batch = append(batch, q.queue[n])
		}
	}
	q.queue = slices.Delete(q.queue, 0, n)
	if len(batch) == 0 {
		delete(q.senders, s)
		return nil
	}
	s.sentAt, s.ackTimeout = time.Now(), strictestAck(batch).Timeout
	q.dispatchLocked() // if the queue was longer than a batch, another sender may take the rest
	return batch
}
