package acquire

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// subscribedPollInterval bounds the interval between two polls of a busy lock while the subscription is confirmed. Why poll
// a subscribed lock: messages are only hints, and get lost. The longest grace of a woken client is about as long, see
// internal/transport/wake_one.go.
const subscribedPollInterval = 2 * time.Second

// manyNames is how many names a client may wait for before it polls each of them more rarely. So it sends at most about
// manyNames polls in a subscribedPollInterval, however many names there are.
const manyNames = 1000

// ErrTimeUp is the end of a wait: of the caller's context, of its longest wait, or of the client.
var ErrTimeUp = errors.New("time is up")

// Lists has a FIFO list of local waiters for each name. Only the first of a list asks Redis. Why: otherwise every
// goroutine that waits for a busy lock would poll Redis. It is safe for concurrent use.
//
// Each removal of a first waiter wakes its successor under mu. So a list with waiters always has a first one that asks, or
// is about to.
type Lists struct {
	mu sync.Mutex

	// Guarded by mu, with the fields of all lists, and of all waiters unless their comment says otherwise.
	byLock map[string]*waitList // by the lock's key; none is empty
	unused []*waitList          // to be reused: most lists have one waiter, and a short life
}

// maxUnusedLists bounds the lists that are kept for reuse.
const maxUnusedLists = 64

// waitList is the waiters of one name, doubly linked. It lasts while it has waiters. After that it may be reused for another
// name, so a waiter that was removed must not use its list once mu is unlocked.
type waitList struct {
	first, last *waiter
	// The last answer to any first waiter, and when it came. A first waiter polls at every pollInterval at least, so an older
	// answer means that Redis does not answer.
	holder     string            // "" if unknown
	holderTTL  time.Duration     // of the present holder's lease
	answeredAt keepalive.Instant // zero if there was no answer
	registered bool              // true if the client may be registered as waiting in Redis, see internal/transport/wake_one.go

	// Arrivals are numbered from 1. entered is the last, and asked is the last before the first waiter asked. See
	// waiter.startAsking.
	entered, asked uint64
}

// waiter is one waiter in a list. Its memory may be used again after leave. It belongs to one goroutine, the waiter's, which
// may set Question before enter and read unregister after leave.
type waiter struct {
	lists *Lists
	Key   string
	list  *waitList
	ack   transport.Ack // that the caller wants

	Question any    // what an answer depends on; nil if no answer holds for two; see share
	arrival  uint64 // its number in the order of arrival

	before, behind *waiter
	ready          chan struct{} // closed once, when it is the first or dismissed; nil if it was the first from the start
	err            error         // why it was dismissed, nil if it was not; set before ready is closed, and read after it
	removed        bool          // true once it has left or was dismissed
	Unregister     bool          // true if it was the last, and the client may be registered: the caller must unregister it
}

// NewLists returns lists without waiters.
func NewLists() *Lists {
	return &Lists{byLock: make(map[string]*waitList)}
}

// enter appends a waiter to the list of a name. The waiter must call leave, even after it was dismissed. Until then its
// memory must not be moved, because its neighbours refer to it.
func (q *Lists) enter(t *waiter, key string, a transport.Ack) {
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

// newListLocked adds an empty list for a name. The caller must append a waiter before it unlocks mu.
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

// Empty returns true if no local caller waits for a name. That may change before the caller uses it.
func (q *Lists) Empty(key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.byLock[key] == nil
}

// mustWait returns true if the waiter is not the first yet, and was not dismissed. It needs no mutex: only ready is read,
// which is not changed after enter.
func (t *waiter) mustWait() bool { return t.ready != nil && !keepalive.Closed(t.ready) }

// wait returns nil once the waiter is the first. It returns ErrTimeUp if ctx has ended or the client is closed, and another
// error if the waiter was dismissed. Whatever it returns, the waiter must call leave.
//
// If ready is closed at the same moment as ctx ends, it may return ErrTimeUp to the first of the list. No wake-up gets lost:
// leave then wakes the next waiter.
func (t *waiter) wait(ctx context.Context, closing <-chan struct{}) error {
	if !t.mustWait() {
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

// leave removes the waiter, and wakes the next if it was the first. It does nothing if the waiter was dismissed.
func (t *waiter) leave() {
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

// removeLocked removes the waiter from its list. The caller must call wakeFirstLocked if the waiter may have been the first.
func (t *waiter) removeLocked() {
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

// failAll removes the waiter, and dismisses all behind it with err. If short is true, too few replicas were the reason, and
// waiters that need fewer replicas stay. Only the first may call it.
//
// Why: each waiter behind it would become the first, wait in vain for as long, and get the same error.
func (t *waiter) failAll(err error, short bool) {
	t.lists.mu.Lock()
	defer t.lists.mu.Unlock()
	var next *waiter
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

// dismissLocked removes a waiter from its list, and has its wait return err. The waiter must not be the first: that has no
// ready channel, or one that is closed.
func (t *waiter) dismissLocked(err error) {
	t.removeLocked()
	t.err = err
	close(t.ready)
}

// wakeFirstLocked wakes the new first waiter after the first has left, or drops the empty list. The caller must have
// removed the first: the ready channel of a waiter is closed only once.
//
// The waiter that empties the list learns whether the client must be unregistered. Why not each waiter: as long as one
// waits, a release has to be able to wake this client.
func (t *waiter) wakeFirstLocked() {
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

// setHolder records the answer to the first, which came now, for the waiters behind it. If their time ends, they can
// return for how long the lock is held, without having asked. A negative TTL does not end. Only the first may call it,
// before leave.
func (t *waiter) setHolder(holder string, left time.Duration, now keepalive.Instant) {
	t.lists.mu.Lock()
	defer t.lists.mu.Unlock()
	t.list.holder, t.list.holderTTL, t.list.answeredAt = holder, left, now
}

// setRegistered records whether the client may be registered as waiting for this lock in Redis. The first must set true
// before it asks. Why not after the answer: without an answer, the client may be registered all the same.
func (t *waiter) setRegistered(registered bool) {
	t.lists.mu.Lock()
	defer t.lists.mu.Unlock()
	t.list.registered = registered
}

// pollInterval returns the longest time between two polls of the first in a list, if it is subscribed. It grows with the
// number of names, see manyNames.
func (q *Lists) pollInterval() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.pollIntervalLocked()
}

// pollIntervalLocked is pollInterval with mu locked.
func (q *Lists) pollIntervalLocked() time.Duration {
	return max(subscribedPollInterval, subscribedPollInterval*time.Duration(len(q.byLock))/manyNames)
}

// holder returns the last answer to the first waiter for a name. It returns false if there is none, or if the answer is
// older than two poll intervals: then Redis does not answer now.
func (q *Lists) holder(key string, now keepalive.Instant) (holder string, left time.Duration, heard bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.byLock[key]
	if l == nil || l.answeredAt == 0 || now.Sub(l.answeredAt) >= 2*q.pollIntervalLocked() {
		return "", 0, false
	}
	return l.holder, l.holderTTL, true
}

// Positions returns the positions of all waiters in their lists at one instant, from 1. A waiter that has left is only an
// address there, whose memory may be used again.
func (q *Lists) Positions() map[*waiter]int {
	q.mu.Lock()
	defer q.mu.Unlock()
	positions := make(map[*waiter]int)
	for _, l := range q.byLock {
		for t, at := l.first, 1; t != nil; t, at = t.behind, at+1 {
			positions[t] = at
		}
	}
	return positions
}

// The first waiter of a list may get an answer that holds for others behind it: a Once was completed. startAsking and
// share give them that answer at once. Why: one after the other, 500 waiters take 500 round trips.

// errAskAlone dismisses a waiter, which must then ask once by itself, and may enter the list again.
var errAskAlone = errors.New("ask alone")

// startAsking records which waiters are in the list before the first one asks. Only these may be given its answer. The first
// must call it before each request. Why:
//
//  1. The first asks, and Redis answers "completed".
//  2. The record is forgotten.
//  3. A waiter enters the list, whose caller knows of step 2.
//  4. The answer of step 1 arrives. It is outdated for that waiter.
func (t *waiter) startAsking() {
	if t.Question == nil {
		return
	}
	t.lists.mu.Lock()
	defer t.lists.mu.Unlock()
	t.list.asked = t.list.entered
}

// share dismisses, with a refusal, the waiters that came before the first one asked and have the same question. The others
// keep their places. A settled refusal says that waiting helps no waiter. Then those of the others that came before are
// dismissed with errAskAlone, and ask at the same time. Only the first may call it. It stays in the list until leave.
//
// Arrivals are in the order of the list, so it stops at the first waiter that came too late.
func (t *waiter) share(refusal error, settled bool) {
	if t.Question == nil {
		return
	}
	t.lists.mu.Lock()
	defer t.lists.mu.Unlock()
	var next *waiter
	for other := t.behind; other != nil && other.arrival <= t.list.asked; other = next {
		next = other.behind
		switch {
		case other.Question == t.Question:
			other.dismissLocked(refusal)
		case settled:
			other.dismissLocked(errAskAlone)
		}
	}
}
