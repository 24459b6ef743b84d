package keepalive

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// The tests in this file run in virtual time, with a protocol that answers as told.

// stand is a Renewer with a script for its servers.
type stand struct {
	*Renewer[struct{}]
	offset atomic.Int64 // nanoseconds by which the clock is ahead of the timers: suspends

	busy  atomic.Bool // no renewal is sent: all stay queued
	mu    sync.Mutex
	sent  []time.Duration // when renewals were sent, since the start
	lost  []error
	reply func(n int, answer func(held bool, err error))
}

func newStand(reply func(n int, answer func(held bool, err error))) *stand {
	s := &stand{reply: reply}
	began := time.Now()
	s.Renewer = NewRenewer[struct{}](func() clock.Instant {
		return clock.Instant(time.Since(began)) + clock.Instant(s.offset.Load())
	}, func(ttl time.Duration) time.Duration { return 2*time.Millisecond + ttl/1000 })
	return s
}

func (s *stand) RenewAll(renewals []*Renewal[struct{}]) {
	for _, r := range renewals {
		sentAt := s.now()
		s.mu.Lock()
		s.sent = append(s.sent, time.Duration(sentAt))
		n := len(s.sent)
		s.mu.Unlock()
		r.Sent.Store(!s.busy.Load())
		s.reply(n, func(held bool, err error) { r.Done(sentAt, held, err) })
	}
}

// lease is a lease of a stand.
type lease struct {
	stand *stand
	entry Entry[struct{}]
	end   End
}

func (l *lease) Hold() *struct{}          { return nil }
func (l *lease) Sender() Sender[struct{}] { return l.stand }
func (l *lease) End(cause error)          { l.end.Set(cause) }
func (l *lease) Renewed(error)            {}
func (l *lease) Done() <-chan struct{}    { return l.end.Context(context.Background()).Done() }

func (l *lease) Lost(cause error) {
	l.stand.mu.Lock()
	defer l.stand.mu.Unlock()
	l.stand.lost = append(l.stand.lost, cause)
}

// lease makes a lease granted by a request sent now, for its whole TTL.
func (s *stand) lease(t *testing.T, terms Terms) *lease {
	t.Helper()
	terms.Granted = terms.TTL
	return s.grant(t, terms)
}

// grant makes a lease granted by a request sent now.
func (s *stand) grant(t *testing.T, terms Terms) *lease {
	t.Helper()
	l := &lease{stand: s}
	terms.SentAt = s.now()
	if !s.Add(&l.entry, l, terms) {
		t.Fatal("not added")
	}
	return l
}

// times returns when renewals were sent.
func (s *stand) times() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}

func (s *stand) losses() []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.lost)
}

var minute = Terms{TTL: time.Minute}

func TestRenewedEachThird(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStand(func(_ int, answer func(bool, error)) { answer(true, nil) })
		l := s.lease(t, minute)
		time.Sleep(10 * time.Minute)
		synctest.Wait() // a tick may be due just now
		if l.end.Cause() != nil {
			t.Errorf("ended: %v", l.end.Cause())
		}
		if n := len(s.times()); n < 29 || n > 31 {
			t.Errorf("%d renewals in 10 TTLs, want 30", n)
		}
		if !s.Remove(&l.entry) || s.Remove(&l.entry) {
			t.Error("remove must succeed once")
		}
		n := len(s.times())
		time.Sleep(time.Hour)
		if len(s.times()) != n {
			t.Error("renewed after it was removed")
		}
	})
}

func TestUnansweredRenewalsAreRepeatedUntilTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStand(func(int, func(bool, error)) {})
		l := s.lease(t, minute)
		<-l.Done()
		if got, want := s.now(), s.TrustedUntil(0, time.Minute); got != want {
			t.Errorf("ended at %v, want %v", time.Duration(got), time.Duration(want))
		}
		if l.end.Cause() != Expired {
			t.Errorf("cause %v", l.end.Cause())
		}
		if len(s.times()) < 3 { // two may be lost without the lease
			t.Errorf("sent at %v", s.times())
		}
	})
}

func TestTwoLostRenewalsAreSurvived(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStand(func(n int, answer func(bool, error)) {
			switch n % 3 {
			case 1: // no answer
			case 2:
				answer(false, errors.New("connection reset"))
			default:
				answer(true, nil)
			}
		})
		l := s.lease(t, minute)
		time.Sleep(time.Hour)
		if l.end.Cause() != nil {
			t.Errorf("ended: %v", l.end.Cause())
		}
		s.Remove(&l.entry)
	})
}

// TestShortGrantIsRenewedInTime: a grant for less than its TTL, as the next in line gets it, survives renewals without
// an answer just as a whole one does.
func TestShortGrantIsRenewedInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStand(func(n int, answer func(bool, error)) {
			switch n {
			case 1: // no answer
			case 2:
				answer(false, errors.New("connection reset"))
			default:
				answer(true, nil)
			}
		})
		l := s.grant(t, Terms{TTL: time.Minute, Granted: time.Minute / 12})
		time.Sleep(time.Minute)
		synctest.Wait()
		if l.end.Cause() != nil {
			t.Errorf("ended: %v, renewals at %v", l.end.Cause(), s.times())
		}
		if n := len(s.times()); n < 4 || n > 6 {
			t.Errorf("renewals at %v: one each third of the TTL after the first answer", s.times())
		}
		s.Close()
	})
}

// TestLateAnswerCountsFromSending: what is trusted counts from before the request, however late its answer.
func TestLateAnswerCountsFromSending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const delay = 15 * time.Second
		s := newStand(func(n int, answer func(bool, error)) {
			if n == 1 {
				time.AfterFunc(delay, func() { answer(true, nil) })
			}
		})
		l := s.lease(t, minute)
		<-l.Done()
		want := s.TrustedUntil(clock.Instant(s.times()[0]), time.Minute)
		if s.now() != want {
			t.Errorf("ended at %v, want %v, a TTL after the renewal was sent", time.Duration(s.now()), time.Duration(want))
		}
	})
}

func TestRefusedRenewalIsLossAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStand(func(_ int, answer func(bool, error)) { answer(false, nil) })
		l := s.lease(t, minute)
		<-l.Done()
		synctest.Wait() // it is reported after that
		if s.now() > clock.Instant(21*time.Second) {
			t.Errorf("told after %v", time.Duration(s.now()))
		}
		if got := s.losses(); len(got) != 1 || !errors.Is(got[0], Taken) {
			t.Errorf("losses %v", got)
		}
	})
}

// TestAnswerAfterUnlockIsIgnored: a renewal that was under way when the lease was unlocked changes nothing.
func TestAnswerAfterUnlockIsIgnored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStand(func(_ int, answer func(bool, error)) {
			time.AfterFunc(time.Second, func() { answer(false, nil) })
		})
		l := s.lease(t, minute)
		time.Sleep(20*time.Second + 500*time.Millisecond)
		synctest.Wait()
		if len(s.times()) != 1 || !s.Remove(&l.entry) {
			t.Fatalf("%d renewals under way", len(s.times()))
		}
		time.Sleep(time.Minute)
		if got := s.losses(); len(got) != 0 {
			t.Errorf("losses %v", got)
		}
	})
}

// TestSuspendEndsLeases lets the clock go on while timers stand still, as they do while the host sleeps.
func TestSuspendEndsLeases(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStand(func(_ int, answer func(bool, error)) { answer(true, nil) })
		l := s.lease(t, minute)
		time.Sleep(time.Second)
		s.offset.Store(int64(2 * time.Minute))
		if left := s.ValidUntil(&l.entry).Sub(s.now()); left > 0 {
			t.Errorf("looks valid for %v after the suspend", left)
		}
		time.Sleep(MaxTimerSleep)
		synctest.Wait()
		if l.end.Cause() == nil {
			t.Error("the lease was not ended within a heartbeat after the suspend")
		}
	})
}

func TestFixedAndBoundedLeasesEnd(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]Terms{
		"fixed":    {TTL: time.Minute, Fixed: true},
		"max hold": {TTL: time.Minute, MaxHold: 150 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newStand(func(_ int, answer func(bool, error)) { answer(true, nil) })
			l := s.lease(t, config)
			<-l.Done()
			want := clock.Instant(config.MaxHold)
			if config.Fixed {
				want = s.TrustedUntil(0, config.TTL)
				if len(s.times()) != 0 {
					t.Errorf("%s: renewed", name)
				}
			}
			if s.now() != want {
				t.Errorf("%s: ended at %v, want %v", name, time.Duration(s.now()), time.Duration(want))
			}
		})
	}
}

func TestExtendedLeaseOutlivesItsTTL(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStand(nil)
		l := s.lease(t, Terms{TTL: time.Minute, Fixed: true})
		time.Sleep(30 * time.Second)
		sent := s.now()
		if !s.Extended(&l.entry, sent, 10*time.Minute) || !s.Extended(&l.entry, sent, time.Second) {
			t.Fatal("not extended")
		}
		<-l.Done()
		if want := s.TrustedUntil(sent, 10*time.Minute); s.now() != want {
			t.Errorf("ended at %v, want %v", time.Duration(s.now()), time.Duration(want))
		}
		if s.Extended(&l.entry, s.now(), time.Minute) {
			t.Error("a lease that is over was extended")
		}
	})
}

// TestQueuedRenewalsAreNotMultiplied: on a machine too busy to send renewals, each lease has one in the queue.
func TestQueuedRenewalsAreNotMultiplied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStand(func(int, func(bool, error)) {})
		s.busy.Store(true)
		l := s.lease(t, minute)
		<-l.Done()
		if n := len(s.times()); n != 1 {
			t.Errorf("%d renewals were queued", n)
		}
	})
}

// TestManyLeasesShareRounds: leases taken over some time are renewed in few batches.
func TestManyLeasesShareRounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStand(func(_ int, answer func(bool, error)) { answer(true, nil) })
		for range 1000 {
			s.lease(t, minute)
			time.Sleep(time.Millisecond)
		}
		time.Sleep(30 * time.Second)
		rounds := make(map[time.Duration]bool)
		for _, at := range s.times() {
			rounds[at] = true
		}
		if len(s.times()) != 1000 || len(rounds) > 60 {
			t.Errorf("%d renewals in %d rounds", len(s.times()), len(rounds))
		}
		if got := len(s.Close()); got != 1000 {
			t.Errorf("%d leases at the end", got)
		}
		if late := new(lease); s.Add(&late.entry, late, Terms{SentAt: s.now(), Granted: time.Minute, TTL: time.Minute}) {
			t.Error("a lease was added after close")
		}
	})
}
