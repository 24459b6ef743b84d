package acquire

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// subscribedPollInterval bounds the interval between two polls of a busy lock while the subscription is confirmed. A subscribed
// lock is polled because messages are only hints, and get lost. The longest grace of a woken client is about as long, see
// internal/transport/subscriptions.go.
const subscribedPollInterval = 2 * time.Second

// manyNames is how many names a client may wait for before it polls each of them more rarely. So it sends at most about
// manyNames polls in a subscribedPollInterval, however many names there are.
const manyNames = 1000

// ErrTimeUp is the end of a wait: of the caller's context, of its longest wait, or of the client.
var ErrTimeUp = errors.New("time is up")

// Lists has a FIFO list of local waiters for each name. Only the first of a list asks Redis, because otherwise every goroutine
// that waits for a busy lock would poll Redis. It is safe for concurrent use.
//
// Each removal of a first waiter wakes its successor under mu. So a list with waiters always has a first one that asks, or
// is about to, or a chain whose end wakes it.
type Lists struct {
	// PollInterval is subscribedPollInterval, except in tests. It must not be changed once the lists are used.
	PollInterval time.Duration

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
	registered bool              // true if the client may be registered as waiting in Redis, see internal/transport/subscriptions.go
	chain      *Chain            // by which the first gets the lock; nil if the first asks Redis

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

	handsOver bool          // true if the waiter may be handed a hold in place of its own; must not be changed after enter
	ttl       time.Duration // that such a hold must have; the same
	takesOver bool          // true while a hold may be handed to the waiter, which waits
	taken     *script.Hold  // that was handed to the waiter, nil if none was; set before ready is closed, and read after it
	chain     *Chain        // of that hold

	before, behind *waiter
	ready          chan struct{} // closed once, when it is the first, dismissed or handed a hold; nil if it was the first from the start
	err            error         // why it was dismissed, nil if it was not; set before ready is closed, and read after it
	removed        bool          // true once it has left or was dismissed
	Unregister     bool          // true if it was the last, and the client may be registered: the caller must unregister it
}

// NewLists returns lists without waiters.
func NewLists() *Lists {
	return &Lists{PollInterval: subscribedPollInterval, byLock: make(map[string]*waitList)}
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

// followed returns true if others wait behind t.
func (t *waiter) followed() bool {
	t.lists.mu.Lock()
	defer t.lists.mu.Unlock()
	return t.behind != nil
}

// mustWait returns true if the waiter is not the first yet, and was not dismissed. It needs no mutex: only ready is read,
// which is not changed after enter.
func (t *waiter) mustWait() bool { return t.ready != nil && !keepalive.Closed(t.ready) }

// wait returns nil once the waiter is the first, or was handed a hold. It returns ErrTimeUp if ctx has ended or the client is
// closed, and another error if the waiter was dismissed. Whatever it returns, the waiter must call leave.
//
// If ready is closed at the same moment as ctx ends, it may return ErrTimeUp to the first of the list. No wake-up gets lost:
// leave then wakes the next waiter.
func (t *waiter) wait(ctx context.Context, closing <-chan struct{}) error {
	if !t.mustWait() {
		return t.err
	}
	if t.handsOver {
		t.setTakesOver(true)
	}
	select {
	case <-t.ready:
		return t.err
	case <-ctx.Done():
	case <-closing:
	}
	if t.handsOver && t.setTakesOver(false) {
		return nil
	}
	return ErrTimeUp
}

// setTakesOver sets whether the waiter may be handed a hold. It returns true if that has happened: then the waiter has the hold,
// even if its time is up.
func (t *waiter) setTakesOver(may bool) (taken bool) {
	t.lists.mu.Lock()
	defer t.lists.mu.Unlock()
	t.takesOver = may
	return t.taken != nil
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
// Because each waiter behind it would become the first, wait in vain for as long, and get the same error.
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

// wakeFirstLocked wakes the new first waiter after the first has left, unless a chain runs, or drops the empty list. The caller must have
// removed the first: the ready channel of a waiter is closed only once.
//
// The waiter that empties the list learns whether the client must be unregistered. Not each waiter learns it, because as long
// as one waits, a release has to be able to wake this client.
func (t *waiter) wakeFirstLocked() {
	if next := t.list.first; next != nil {
		if t.list.chain == nil {
			close(next.ready)
		}
		return
	}
	if t.list.chain != nil {
		t.list.chain.timer.Stop()
		t.list.chain = nil
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

// setRegistered records whether the client may be registered as waiting for this lock in Redis. The first must set true before
// it asks. It is set before the answer, because without an answer, the client may be registered all the same.
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
	return max(q.PollInterval, q.PollInterval*time.Duration(len(q.byLock))/manyNames)
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

// The first waiter of a list may get an answer that holds for others behind it: a Once was completed. startAsking and share
// give them that answer at once, because one after the other, 500 waiters take 500 round trips.

// errAskAlone dismisses a waiter, which must then ask once by itself, and may enter the list again.
var errAskAlone = errors.New("ask alone")

// startAsking records which waiters are in the list before the first one asks. Only these may be given its answer. The first
// must call it before each request. Otherwise:
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
// keep their places. A settled refusal says that waiting helps no waiter. Then the others that came before are
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

const (
	// unsubscribedPollInterval bounds the interval between two polls of a busy lock before the subscription is confirmed.
	// Until then intervals grow from firstPollInterval, since a short wait may end before the confirmation comes. While the
	// subscription is confirmed, the poll interval of the wait lists applies.
	unsubscribedPollInterval = 250 * time.Millisecond
	firstPollInterval        = 10 * time.Millisecond
)

// waitWithoutQueue waits for a lock that is granted to the first request after a release. A waiter that was dismissed with
// errAskAlone asks once, and enters the list again if the lock is busy.
func (a *Acquisition) waitWithoutQueue(ctx context.Context) error {
	if a.Reenters {
		// A re-entry asks before it enters the list. Otherwise it would wait behind callers that wait for its own release.
		if err := a.ask(ctx); err != errBusy {
			return err
		}
	}
	for {
		err := a.waitInList(ctx)
		if err != errAskAlone {
			return err
		}
		if err = a.ask(ctx); err != errBusy {
			return err
		}
	}
}

// waitInList waits in the list of this process, and polls Redis as its first. Until then the first of the list asks for it,
// so the answers to that one count as answers to this acquisition.
//
// How the first ends decides about those behind it: after a refusal, waiters with the same question get the same. After an
// outage, or answers for as long that no Redis gives, all do. In all other cases the next becomes the first.
func (a *Acquisition) waitInList(ctx context.Context) error {
	t := &a.localWaiter
	*t = waiter{Question: a.Question, handsOver: a.HandsOver && a.Hold.Unanswered == 0, ttl: a.Hold.TTL}
	a.Env.Lists.enter(t, a.listKey(), a.Hold.Ack)
	defer func() {
		if a.Chain != nil && t.taken == nil {
			t.leaveToChain(a.Chain, a.Env.Now)
		} else {
			t.leave()
		}
		a.unregisterClient(t)
	}()
	if t.mustWait() {
		a.reportWait(0, nil)
	}
	if err := t.wait(ctx, a.Env.Operations.Closing); err != nil {
		if a.Holder, a.HolderTTL, a.Answered = a.Env.Lists.holder(t.Key, a.Env.Now()); !a.Answered {
			a.LastErr = transport.ErrNotAnswered
		}
		return err
	}
	if t.taken != nil {
		return a.takeOver(ctx, t)
	}
	if t.ready != nil { // another was the first before
		if holder, left, heard := a.Env.Lists.holder(t.Key, a.Env.Now()); heard {
			a.Holder, a.HolderTTL, a.Answered = holder, left, true // Redis answers, whether or not there is time for another answer
		}
	}
	err := a.pollAsHead(ctx, t)
	switch end := err.(type) { // not errors.As, whose targets would be allocated for each grant too
	case nil:
		t.setHolder(a.Hold.Owner, a.Hold.TTL, a.sentAt) // the holder is this caller now
	case *script.Refusal:
		t.share(err, end.Settled())
	case *FailedError:
		if end.Outage || transport.Unrecognized(end.Err) { // otherwise they would get the same, one after the other
			t.failAll(err, transport.Unacknowledged(end.Err))
		}
	}
	return err
}

// listKey returns the key of the list of this process in which the request waits. A named owner has a list of its own, because
// it may get the lock in another process, and would not ask in time to enter it too while others of this process are before it.
func (a *Acquisition) listKey() string {
	if a.NamedOwner {
		return a.Hold.Keys.Lock + "\x00" + a.Hold.Owner
	}
	return a.Hold.Keys.Lock
}

// pollAsHead asks until the lock is granted: after a notification, after the holder's lease, and at the poll interval. It
// returns ErrTimeUp if the time is up, and the error of ask otherwise.
//
// It subscribes only after the first answer, because most locks are free, and need no subscription. No release is missed:
//
//  1. The waiter asks. The lock is busy.
//  2. The waiter subscribes.
//  3. The holder unlocks, before Redis has the subscription. The message does not reach the waiter.
//  4. Redis confirms the subscription, which notifies the waiter too. It asks again.
//
// A request registers the client as waiting only with a confirmed subscription, because only then can a release wake it.
func (a *Acquisition) pollAsHead(ctx context.Context, t *waiter) error {
	sub := a.activeSubscription()
	defer func() {
		if sub != nil {
			sub.Close()
		}
	}()
	for polls := 0; ; polls++ {
		a.want.Registration = sub != nil && sub.Confirmed() && a.Env.OneServer
		a.want.Tokens = 0
		if a.HandsOver && t.followed() {
			a.want.Tokens = maxChainTokens
		}
		t.startAsking()
		if a.want.Registration {
			t.setRegistered(true) // before the request: without an answer, the client may be registered all the same
		}
		err := a.ask(ctx)
		if err != errBusy {
			if err == nil && a.unregistered {
				t.setRegistered(false) // acquire.lua has taken the client out
			}
			return err
		}
		a.reportWait(0, nil)
		a.Caller.StillWaiting(a.call.Since)
		t.setHolder(a.Holder, a.HolderTTL, a.Env.Now())
		if sub == nil {
			sub = a.Strategy.Subscribe(a.Hold.Keys)
		}
		limit := min(firstPollInterval<<min(polls, 10), unsubscribedPollInterval)
		if sub.Confirmed() {
			limit = a.Env.Lists.pollInterval()
		}
		keepalive.Pause(ctx, a.nextPoll(limit), sub.Notifications(), a.Env.Operations.Closing)
		if a.Env.timeUp(ctx) {
			return ErrTimeUp
		}
		// A named owner has a list of its own: the client may have been woken for a waiter of another list.
		a.want.Woken = sub.StartAsking() && !a.NamedOwner
	}
}

// activeSubscription subscribes if that needs no command, and if a release wakes one client: then the first request can register
// this client. Otherwise it returns nil.
func (a *Acquisition) activeSubscription() script.Subscription {
	if a.WakeOne == nil {
		return nil
	}
	k := a.Hold.Keys
	if sub := a.WakeOne.Subs.SubscribeAsClientIfActive(k.Channel, k.Lock, k.WaitingClients); sub != nil {
		return sub
	}
	return nil
}

// nextPoll returns how long to wait for a notification: half of limit to limit, or until the holder's lease expires. The expiry
// counts because a holder that has crashed publishes no release.
func (a *Acquisition) nextPoll(limit time.Duration) time.Duration {
	poll := limit/2 + rand.N(limit/2)
	if a.HolderTTL >= 0 {
		// A little after the expiry, and not all at the same moment.
		poll = min(poll, a.HolderTTL+time.Millisecond+rand.N(4*time.Millisecond))
	}
	return poll
}

// unregisterClient takes the number of the client out of the set in Redis if the request has left its wait list empty, because
// otherwise a release would wake a client that does not wait, and the other clients would ask only after a grace. It does not
// wait for the command. If that fails, the grace is all that is lost.
//
// A caller that enters meanwhile must not be forgotten:
//
//  1. The last waiter leaves. The command to unregister the client is sent.
//  2. Another caller of this client waits for the lock, and registers the client again.
//  3. The command arrives, and takes out that registration too.
//  4. RecheckAll notifies the caller of step 2. It asks again, and so registers the client once more.
func (a *Acquisition) unregisterClient(t *waiter) {
	if a.WakeOne == nil || !t.Unregister {
		return
	}
	m, k := a.WakeOne, a.Hold.Keys
	a.Env.Go(func(ctx context.Context) {
		if m.Subs.CountWaitingClients(k.Channel) > 0 {
			return // callers of another wait list wait, and need the registration
		}
		_ = m.PassTurn(transport.Detached(ctx), k.Lock, k.WaitingClients, m.ClientNumberArg)
		m.Subs.RecheckAll(k.Channel)
	})
}

// Waits counts the callers that wait for each name, whatever the strategy. It bounds them, and decides when to warn of
// waits that last. Each name has a count of its own, so that a busy name does not affect callers of other names. It is
// safe for concurrent use.
//
// There is a bound because each waiter keeps a goroutine, and mostly a request of a user, in memory. While the lock is held,
// they would pile up without end.
//
// Warnings of a name come once, and then at doubling intervals. They are for a name and not for a call, because 10,000 callers
// that wait for one name are one line in the log at a time. The intervals double because a wait of days must not fill the log.
type Waits struct {
	Most      int           // callers for one name; must not be changed after the first tryAdd
	WarnAfter time.Duration // for which a call has to wait before the first warning; 0 for no warnings; must not be changed after the first Due

	mu     sync.Mutex
	byLock map[string]nameWaits // by the lock's key; a name for which nobody waits takes no memory; guarded by mu
}

// nameWaits is what is known of the waits for one name.
type nameWaits struct {
	callers  int
	next     keepalive.Instant // no warning before
	interval time.Duration     // from the last warning to next; 0 before the first warning
}

// NewWaits returns waits without callers.
func NewWaits(most int, warnAfter time.Duration) *Waits {
	return &Waits{Most: most, WarnAfter: warnAfter, byLock: make(map[string]nameWaits)}
}

// tryAdd counts one more caller that waits for a name. It returns false, and counts nothing, if there are as many as may be.
// If it returns true, the caller must call remove once, when it waits no more.
func (w *Waits) tryAdd(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.byLock[key]
	if n.callers >= w.Most {
		return false
	}
	n.callers++
	w.byLock[key] = n
	return true
}

// remove ends the wait of one caller that tryAdd has counted.
func (w *Waits) remove(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.byLock[key]
	if n.callers--; n.callers == 0 {
		delete(w.byLock, key)
		return
	}
	w.byLock[key] = n
}

// Count returns how many callers wait for a name.
func (w *Waits) Count(key string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.byLock[key].callers
}

// Due returns true if one of the callers that wait for a name has waited for a long time, and the last warning of the
// name is long enough ago. Then the caller must warn.
func (w *Waits) Due(key string, waited time.Duration, now keepalive.Instant) bool {
	if w.WarnAfter == 0 || waited < w.WarnAfter {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.byLock[key]
	switch {
	case n.interval == 0:
		late := min(waited-w.WarnAfter, w.WarnAfter/2) // which must not delay the second warning as well
		n.next, n.interval = now.Add(w.WarnAfter-late), w.WarnAfter
	case now < n.next:
		return false
	default:
		n.interval *= 2
		n.next = now.Add(n.interval)
	}
	w.byLock[key] = n
	return true
}

// Calls are the calls of this process that wait, whatever the strategy, for operators. A call enters when its wait begins, so a
// call that is granted at once costs nothing here. It is safe for concurrent use.
type Calls struct {
	mu      sync.Mutex
	waiting map[*Call]struct{} // guarded by mu, with the fields of all calls
}

// Call is one call that waits. Its position comes from the list or the queue in which it stands.
type Call struct {
	Name     string
	Owner    string
	Strategy script.Strategy
	Since    keepalive.Instant
	Local    *waiter // in the list of this process; nil if it waits in a queue in Redis
	Place    *place  // in a queue in Redis; nil if it waits in a list, or takes a new place at this moment
}

// NewCalls returns an empty set of calls.
func NewCalls() *Calls { return &Calls{waiting: make(map[*Call]struct{})} }

// enter adds a call. The caller must call leave once the wait has ended. Only update may change the call until then.
func (c *Calls) enter(call *Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting[call] = struct{}{}
}

// leave removes a call.
func (c *Calls) leave(call *Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, call)
}

// update changes the owner and the place of a call, for a hold that was replaced or queued anew.
func (c *Calls) update(call *Call, owner string, place *place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	call.Owner, call.Place = owner, place
}

// All returns copies of all calls at one instant, in no order.
func (c *Calls) All() []Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]Call, 0, len(c.waiting))
	for call := range c.waiting {
		all = append(all, *call)
	}
	return all
}
