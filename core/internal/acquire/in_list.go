package acquire

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

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
	*t = waiter{Question: a.Question}
	a.Env.Lists.enter(t, a.listKey(), a.Hold.Ack)
	defer func() {
		t.leave()
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
	if holder, left, heard := a.Env.Lists.holder(t.Key, a.Env.Now()); heard {
		a.Holder, a.HolderTTL, a.Answered = holder, left, true // Redis answers, whether or not there is time for another answer
	}
	err := a.pollAsHead(ctx, t)
	switch end := err.(type) { // not errors.As, whose targets would be allocated for each grant too
	case nil:
		t.setHolder(a.Hold.Owner, a.Hold.TTL, a.Env.Now()) // the holder is this caller now
	case *RefusedError:
		t.share(err, end.Refused.Settled())
	case *UnavailableError:
		t.failAll(err, transport.Unacknowledged(end.Last)) // otherwise they would get the same, one after the other
	case *FailedError:
		if transport.Unrecognized(end.Err) {
			t.failAll(err, false) // as after an outage
		}
	}
	return err
}

// listKey returns the key of the list of this process in which the request waits. A named owner has a list of its own. Why:
// it may get the lock in another process, and would not ask in time to enter it too while others of this process are before
// it.
func (a *Acquisition) listKey() string {
	if a.NamedOwner {
		return a.Hold.Keys.Lock + "\x00" + a.Hold.Owner
	}
	return a.Hold.Keys.Lock
}

// pollAsHead asks until the lock is granted: after a notification, after the holder's lease, and at the poll interval. It
// returns ErrTimeUp if the time is up, and the error of ask otherwise.
//
// It subscribes only after the first answer. Why: most locks are free, and need no subscription. No release is missed:
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

// nextPoll returns how long to wait for a notification: half of limit to limit, or until the holder's lease expires. Why the
// expiry: a holder that has crashed publishes no release.
func (a *Acquisition) nextPoll(limit time.Duration) time.Duration {
	poll := limit/2 + rand.N(limit/2)
	if a.HolderTTL >= 0 {
		// A little after the expiry, and not all at the same moment.
		poll = min(poll, a.HolderTTL+time.Millisecond+rand.N(4*time.Millisecond))
	}
	return poll
}

// unregisterClient takes the number of the client out of the set in Redis if the request has left its wait list empty. Why:
// otherwise a release would wake a client that does not wait, and the other clients would ask only after a grace. It does
// not wait for the command. If that fails, the grace is all that is lost.
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
		ctx, cancel := context.WithTimeout(ctx, transport.FirstAnswerTimeout)
		defer cancel()
		_ = m.WakeNextIfFree(ctx, k.Lock, k.WaitingClients, m.ClientNumber)
		m.Subs.RecheckAll(k.Channel)
	})
}
