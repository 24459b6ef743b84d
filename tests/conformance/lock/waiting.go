package lockconformance

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

var waitingTests = map[string]func(*testing.T, Subject){
	"WaiterIsWoken":              waiterIsWoken,
	"OrderWithinAProcess":        orderWithinAProcess,
	"WaitIsBounded":              waitIsBounded,
	"CancelledWhileHeld":         cancelledWhileHeld,
	"CancelledInLine":            cancelledInLine,
	"CancelledBeforeTheCall":     cancelledBeforeTheCall,
	"CancelledInFlight":          cancelledInFlight,
	"CancelledOnAFrozenServer":   cancelledOnAFrozenServer,
	"CancelledAnywhere":          cancelledAnywhere,
	"LateRequestIsNotGranted":    lateRequestIsNotGranted,
	"WaiterOutlivesARestart":     waiterOutlivesARestart,
	"OutageIsNotABusyLock":       outageIsNotABusyLock,
	"DeadSubscriptionIsBypassed": deadSubscriptionIsBypassed,
	"GivenUpWaitsForNoMinHold":   givenUpWaitsForNoMinHold,
	"OutageEndsTheWholeLine":     outageEndsTheWholeLine,
	"SlowAnswersEndTheCall":      slowAnswersEndTheCall,
	"TooManyWaitersAreRefused":   tooManyWaitersAreRefused,
}

func waiterIsWoken(t *testing.T, s Subject) {
	w := newWorld(t, s)
	ctx := context.Background()
	lease := w.must(w.process().lock("name").Lock(ctx, core.WithTTL(long)))
	waiting := w.process().lineUp(ctx, "name")
	w.unlock(lease)
	w.unlock(receive(t, waiting).check(t))
}

// orderWithinAProcess starts waiters one after another; they must be served in that order.
func orderWithinAProcess(t *testing.T, s Subject) {
	w := newWorld(t, s)
	ctx := context.Background()
	p := w.process()
	lease := w.must(w.process().lock("name").Lock(ctx))
	var waiting []<-chan outcome
	for range 8 {
		waiting = append(waiting, p.lineUp(ctx, "name"))
	}
	w.unlock(lease)
	for _, next := range waiting {
		before := lease
		lease = receive(t, next).check(t)
		w.wantNewer(lease, before)
		w.unlock(lease)
	}
}

// tooManyWaitersAreRefused: one more than may wait is told at once, unless it holds the lock. The others do not suffer.
func tooManyWaitersAreRefused(t *testing.T, s Subject) {
	w := newWorld(t, s)
	ctx := context.Background()
	p := w.process(core.WithTTL(long), core.WithMaxWaiters(2))
	lease := w.must(p.lock("name").Lock(ctx))
	first, second := p.lineUp(ctx, "name"), p.lineUp(ctx, "name")
	for range 3 {
		_, err := p.rival("name").Lock(ctx)
		w.wantErr(err, core.ErrTooManyWaiters, core.ErrNotAcquired)
		if errors.Is(err, core.ErrUnavailable) {
			t.Errorf("error %v tells of an outage", err)
		}
	}
	_, err := p.rival("name").TryLock(ctx)
	if w.wantErr(err, core.ErrNotAcquired); errors.Is(err, core.ErrTooManyWaiters) {
		t.Errorf("error %v of somebody who does not wait", err)
	}
	w.unlock(w.must(p.rival("elsewhere").Lock(ctx)))
	w.unlock(w.must(p.lock("name").Lock(lease.Context())))
	w.unlock(lease)
	w.unlock(receive(t, first).check(t))
	w.unlock(receive(t, second).check(t))
	w.unlock(w.must(p.rival("name").Lock(ctx)))
}

func waitIsBounded(t *testing.T, s Subject) {
	w := newWorld(t, s)
	ctx := context.Background()
	w.must(w.process().lock("name").Lock(ctx, core.WithTTL(long)))
	p := w.process()
	for _, limit := range []time.Duration{0, 50 * time.Millisecond} {
		var err error
		testkit.Eventually(t, within, "a refusal that tells how long to wait", func() bool {
			_, err = p.rival("name", core.WithWait(within)).Lock(ctx, core.WithWait(limit))
			if errors.Is(err, core.ErrUnavailable) {
				return false // on a busy machine there was no answer before the wait was over
			}
			var refused *core.NotAcquiredError // without RetryAfter for the same reason
			return !errors.Is(err, core.ErrNotAcquired) || asError(err, &refused) && refused.RetryAfter > 0
		})
		w.wantErr(err, core.ErrNotAcquired)
		if errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v tells of a deadline the caller did not set", err)
		}
	}
}

func cancelledBeforeTheCall(t *testing.T, s Subject) {
	w := newWorld(t, s)
	reason := errors.New("reason")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(reason)
	_, err := w.process().lock("name").Lock(ctx)
	w.wantErr(err, core.ErrNotAcquired, context.Canceled, reason)
	w.free("name")
}

func cancelledWhileHeld(t *testing.T, s Subject) {
	w := newWorld(t, s)
	lease := w.must(w.process().lock("name").Lock(context.Background(), core.WithTTL(long)))
	ctx, cancel := context.WithCancel(context.Background())
	waiting := w.process().lineUp(ctx, "name")
	cancel()
	w.wantErr(receive(t, waiting).err, core.ErrNotAcquired, context.Canceled)
	w.unlock(lease)
	w.free("name")
}

// cancelledInLine cancels a waiter that waits behind another of its own process.
func cancelledInLine(t *testing.T, s Subject) {
	w := newWorld(t, s)
	lease := w.must(w.process().lock("name").Lock(context.Background(), core.WithTTL(long)))
	ctx, cancel := context.WithCancel(context.Background())
	p := w.process()
	first := p.lineUp(context.Background(), "name")
	second := p.lineUp(ctx, "name")
	third := p.lineUp(context.Background(), "name")
	cancel()
	w.wantErr(receive(t, second).err, core.ErrNotAcquired, context.Canceled)
	w.unlock(lease)
	w.unlock(receive(t, first).check(t))
	w.unlock(receive(t, third).check(t))
	w.free("name")
}

// cancelledInFlight cancels when the request was executed and its reply is on the way. A Redlock that gave it up sooner
// would take its votes back.
func cancelledInFlight(t *testing.T, s Subject) {
	w := newWorld(t, s)
	p := w.patient(append(slices.Clone(s.Patience), core.WithTTL(long))...)
	// The servers that will have the lock get to know the scripts. Another name may be on other servers of a Cluster: these would ask
	// for the text of a script, by a reply that is held back.
	w.unlock(w.must(p.lock("name").Lock(context.Background())))
	w.awaitKey("name", false)
	ctx, cancel := context.WithCancel(context.Background())
	for _, r := range p.relays {
		r.Hold(testkit.ToClient)
	}
	waiting := start(ctx, p.lock("name"))
	w.awaitKey("name", true)
	w.held("name")
	cancel()
	w.wantErr(receive(t, waiting).err, core.ErrNotAcquired, context.Canceled)
	p.heal()
	w.free("name")
}

// cancelledOnAFrozenServer checks that Lock heeds its context though the server does not answer, and that what
// was in the server's buffers does not lead to a grant when it continues.
func cancelledOnAFrozenServer(t *testing.T, s Subject) {
	w := newOwnWorld(t, s)
	p := w.process(core.WithTTL(long))
	w.unlock(w.must(p.lock("name").Lock(context.Background())))
	w.each((*testkit.Server).Pause)
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err := p.lock("name").Lock(ctx)
	w.wantErr(err, core.ErrNotAcquired, core.ErrUnavailable, context.DeadlineExceeded)
	_, err = p.lock("name").Lock(context.Background(), core.WithWait(100*time.Millisecond))
	w.wantErr(err, core.ErrNotAcquired, core.ErrUnavailable)
	w.each((*testkit.Server).Resume)
	w.free("name")
}

// cancelledAnywhere cancels at random moments of short acquisitions.
func cancelledAnywhere(t *testing.T, s Subject) {
	w := newWorld(t, s)
	p := w.process(core.WithTTL(long))
	granted := 0
	for range 200 {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(rand.N(time.Millisecond), cancel)
		lease, err := p.lock("name").Lock(ctx)
		if err == nil {
			granted++
			w.unlock(lease)
		} else {
			w.wantErr(err, core.ErrNotAcquired, context.Canceled)
		}
		cancel()
	}
	t.Logf("%d of 200 granted", granted)
	w.free("name")
}

// lateRequestIsNotGranted delivers a request after its sender has given up and compensated.
func lateRequestIsNotGranted(t *testing.T, s Subject) {
	w := newWorld(t, s)
	p := w.patient(core.WithTTL(long))
	w.unlock(w.must(p.lock("name").Lock(context.Background())))
	ctx, cancel := context.WithCancel(context.Background())
	for _, r := range p.relays {
		r.Hold(testkit.ToServer)
	}
	waiting := start(ctx, p.lock("name"))
	p.awaitHeld(testkit.ToServer)
	cancel()
	w.wantErr(receive(t, waiting).err, core.ErrNotAcquired, context.Canceled)
	for _, r := range p.relays {
		r.Deliver()
	}
	w.free("name")
}

func waiterOutlivesARestart(t *testing.T, s Subject) {
	w := newOwnWorld(t, s, testkit.AOF())
	ctx := context.Background()
	holder := w.process()
	lease := w.must(holder.lock("name").Lock(ctx, core.WithTTL(long)))
	waiting := w.process().lineUp(ctx, "name")
	w.restart()
	w.unlock(lease)
	w.unlock(receive(t, waiting).check(t))
}

func outageIsNotABusyLock(t *testing.T, s Subject) {
	w := newOwnWorld(t, s)
	p := w.process()
	w.each((*testkit.Server).Kill)
	_, err := p.lock("name").TryLock(context.Background())
	w.wantErr(err, core.ErrUnavailable)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_, waited := p.lock("name").Lock(ctx)
	w.wantErr(waited, core.ErrUnavailable)
	if errors.Is(err, core.ErrNotAcquired) {
		t.Errorf("TryLock: %v is ErrNotAcquired", err)
	}
	w.restart() // closing would wait for it
}

// deadSubscriptionIsBypassed lets every release message be lost on connections that stay open.
func deadSubscriptionIsBypassed(t *testing.T, s Subject) {
	w := newOwnWorld(t, s)
	ctx := context.Background()
	holder := w.process()
	lease := w.must(holder.lock("name").Lock(ctx, core.WithTTL(long)))
	p := w.relayed(core.WithTTL(long)) // with which each server of a Redlock has a second
	waiting := p.lineUp(ctx, "name")
	testkit.Eventually(t, within, "the waiter to listen", func() bool {
		return !slices.ContainsFunc(w.places, func(p *place) bool { return !slices.ContainsFunc(p.servers, hasListener) })
	})
	for _, r := range p.relays {
		r.DropExisting(testkit.ToClient)
	}
	w.unlock(lease)
	w.unlock(receive(t, waiting).check(t))
}

func hasListener(s *testkit.Server) bool {
	stats := s.CommandStats()
	return stats["subscribe"].Calls+stats["ssubscribe"].Calls > 0
}

// givenUpWaitsForNoMinHold: a minimum time counts for holders only, not for a call that was cancelled while its
// request was in flight.
func givenUpWaitsForNoMinHold(t *testing.T, s Subject) {
	w := newWorld(t, s)
	p := w.patient()
	p.known()
	for _, r := range p.relays {
		r.LoseReplies(w.key("name"), 1000, testkit.Silent) // all that Lock sends, however often
	}
	ctx, cancel := context.WithCancel(context.Background())
	given := start(ctx, p.lock("name"), core.WithMinHold(long))
	testkit.Eventually(t, within, "the reply to be lost", p.lostReplies)
	cancel()
	w.wantErr(receive(t, given).err, context.Canceled)
	w.free("name")
}

// outageEndsTheWholeLine: those who wait in line are not made to wait for the outage one after the other.
func outageEndsTheWholeLine(t *testing.T, s Subject) {
	w := newWorld(t, s)
	holder, p := w.process(), w.relayed()
	w.must(holder.lock("name").Lock(context.Background(), core.WithTTL(long)))
	var waiting []<-chan outcome
	for range 8 {
		waiting = append(waiting, p.lineUp(context.Background(), "name"))
	}
	for _, r := range p.relays {
		r.Refuse(true)
		r.Reset()
	}
	for _, done := range waiting {
		err := receive(t, done).err // all within the time that is allowed for one
		w.wantErr(err, core.ErrUnavailable)
		if errors.Is(err, core.ErrNotAcquired) {
			t.Errorf("%v is ErrNotAcquired", err)
		}
	}
}

// slowAnswersEndTheCall: grants that are over when they arrive are no leases, and asking for more of them ends.
func slowAnswersEndTheCall(t *testing.T, s Subject) {
	w := newWorld(t, s)
	p := w.relayed()
	p.known()
	for _, r := range p.relays {
		r.Delay(testkit.ToClient, 50*time.Millisecond)
	}
	_, err := p.lock("name").TryLock(context.Background(), core.WithTTL(20*time.Millisecond))
	w.wantErr(err, core.ErrUnavailable)
	p.heal()
	w.free("name")
}
