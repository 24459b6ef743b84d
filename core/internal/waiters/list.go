package waiters

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/lifecycle"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// PollSubscribed is the interval between two polls of a busy lock while the subscription is confirmed. Why poll a
// subscribed lock: notifications are only a hint.
const subscribedPollInterval = 2 * time.Second

// manyNames is how many names a client may wait for before it polls each of them more rarely. So it polls at most
// manyNames times in a PollSubscribed.
const manyNames = 1000

// ErrTimeUp is the end of a wait: of the caller's context, of its longest wait, or of the client.
var ErrTimeUp = errors.New("time is up")

// Lists has a FIFO list of local waiters for each name. Only the first of a list asks Redis. Why: otherwise every
// goroutine that waits for a busy lock would poll Redis.
type Lists struct {
	mu     sync.Mutex
	byLock map[string]*waitList // by the lock's key; none is empty
	unused []*waitList          // to be reused: most lists have one waiter, and a short life
}

// maxUnusedLists bounds the lists that are kept for reuse.
const maxUnusedLists = 64

// waitList is the waiters of one name. The first asks Redis.
type waitList struct {
	first, last *Waiter
	// The last answer to the first, and when it came; the first polls at every pollInterval at least.
	holderTTL  time.Duration // of the present holder's lease
	answeredAt clock.Instant // zero: never
	registered bool          // the client is registered as waiting in Redis, see internal/pubsub/wake_one.go

	entered, asked uint64 // the number of arrivals, in all and before the first asked; see shared_answer.go
}

// Waiter is one waiter in a list.
type Waiter struct {
	lists *Lists
	Key   string
	list  *waitList
	ack   transport.Ack // that the caller wants

	Question any    // what an answer depends on; nil if no answer holds for two; see shared_answer.go
	arrival  uint64 // in the order of arrival

	before, behind *Waiter
	ready          chan struct{} // closed when it is the first, or was dismissed; nil if it was the first from the start
	err            error         // why it was dismissed; set before ready is closed
	removed        bool          // from the list
	Unregister     bool          // it has left an empty list whose client is registered
}

// NewLists returns lists without waiters.
func NewLists() *Lists {
	return &Lists{byLock: make(map[string]*waitList)}
}

// Enter appends a waiter to the list of a name. The waiter must call leave.
func (q *Lists) Enter(t *Waiter, key string, a transport.Ack) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t.lists, t.Key, t.ack = q, key, a
	l := q.byLock[key]
	if l == nil {
		l = q.newListLocked(key)
	}
	l.entered++
	t.list, t.before, t.arrival = l, l.last, l.entered
	if l.last = t; t.before == nil {
		l.first = t
	} else {
		t.before.behind = t
		t.ready = make(chan struct{})
	}
}

func (q *Lists) newListLocked(key string) *waitList {
	var l *waitList
	if n := len(q.unused); n > 0 {
		l, q.unused = q.unused[n-1], q.unused[:n-1]
		*l = waitList{}
	} else {
		l = new(waitList)
	}
	q.byLock[key] = l
	return l
}

// Empty reports whether no local caller waits for a name.
func (q *Lists) Empty(key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.byLock[key] == nil
}

// MustWait reports whether the waiter is not the first yet.
func (t *Waiter) MustWait() bool { return t.ready != nil && !lifecycle.Closed(t.ready) }

// Wait returns when the waiter is the first. It returns errTimeUp if ctx has ended or the client is closed, and another
// error if the waiter was dismissed.
func (t *Waiter) Wait(ctx context.Context, closing <-chan struct{}) error {
	if !t.MustWait() {
		return t.err
	}
	select {
	case <-t.ready:
		return t.err
	case <-ctx.Done():
		return ErrTimeUp
	case <-closing:
		return ErrTimeUp
	}
}

// Leave removes the waiter, and wakes the next if it was the first.
func (t *Waiter) Leave() {
	t.lists.mu.Lock()
	defer t.lists.mu.Unlock()
	if t.removed {
		return
	}
	wasFirst := t.list.first == t
	t.removeLocked()
	if wasFirst {
		t.wakeFirstLocked()
	}
}

// removeLocked removes the waiter from its list.
func (t *Waiter) removeLocked() {
	t.removed = true
	if t.before == nil {
		t.list.first = t.behind
	} else {
		t.before.behind = t.behind
	}
	if t.behind == nil {
		t.list.last = t.before
	} else {
		t.behind.before = t.before
	}
	t.before, t.behind = nil, nil // so that a removed waiter keeps no others in memory
}

// FailAll dismisses all waiters of the list with err. If short is true, too few replicas were the reason, and waiters that
// need fewer replicas stay. Only the first may call it.
func (t *Waiter) FailAll(err error, short bool) {
	t.lists.mu.Lock()
	defer t.lists.mu.Unlock()
	var next *Waiter
	for other := t; other != nil; other = next {
		next = other.behind
		if short && other.ack.Replicas < t.ack.Replicas {
			continue
		}
		if other == t {
			t.removeLocked()
		} else {
			other.dismissLocked(err)
		}
	}
	t.wakeFirstLocked()
}

// dismissLocked removes a waiter from its list, and has its wait return err.
func (t *Waiter) dismissLocked(err error) {
	t.removeLocked()
	t.err = err
	close(t.ready)
}

// wakeFirstLocked wakes the new first waiter after the first has left, or drops the empty list.
func (t *Waiter) wakeFirstLocked() {
	if next := t.list.first; next != nil {
		close(next.ready)
		return
	}
	t.Unregister = t.list.registered
	delete(t.lists.byLock, t.Key)
	if len(t.lists.unused) < maxUnusedLists {
		t.lists.unused = append(t.lists.unused, t.list)
	}
}

// SetHolderTTL records the answer to the first, for the waiters behind it whose time ends.
func (t *Waiter) SetHolderTTL(left time.Duration, now clock.Instant) {
	t.lists.mu.Lock()
	defer t.lists.mu.Unlock()
	t.list.holderTTL, t.list.answeredAt = left, now
}

// SetRegistered records whether the client is registered as waiting for this lock in Redis.
func (t *Waiter) SetRegistered(registered bool) {
	t.lists.mu.Lock()
	defer t.lists.mu.Unlock()
	t.list.registered = registered
}

// PollInterval is the longest time between two polls of the first in a list, if it is subscribed.
func (q *Lists) PollInterval() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.pollIntervalLocked()
}

func (q *Lists) pollIntervalLocked() time.Duration {
	return max(subscribedPollInterval, subscribedPollInterval*time.Duration(len(q.byLock))/manyNames)
}

// HolderTTL returns the last answer to the first waiter for a name. It returns false if there is none, or if the answer is
// older than two poll intervals: then Redis does not answer now.
func (q *Lists) HolderTTL(key string, now clock.Instant) (left time.Duration, heard bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.byLock[key]
	if l == nil || l.answeredAt == 0 || now.Sub(l.answeredAt) >= 2*q.pollIntervalLocked() {
		return 0, false
	}
	return l.holderTTL, true
}
