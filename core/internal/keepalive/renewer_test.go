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
)

// The tests in this file run in virtual time. A function of each test answers the renewals.

// testRenewer is a Renewer that is its own Sender. The function reply stands for the servers.
type testRenewer struct {
	*Renewer[struct{}]
	offset atomic.Int64 // nanoseconds by which the clock is ahead of the timers, as after a suspend

	busy  atomic.Bool // true if no renewal is sent: all stay queued
	mu    sync.Mutex
	sent  []time.Duration // when renewals were sent, since the start; guarded by mu
	lost  []error         // guarded by mu
	reply func(n int, answer func(held bool, err error))
}

func newTestRenewer(reply func(n int, answer func(held bool, err error))) *testRenewer {
	s := &testRenewer{reply: reply}
	began := time.Now()
	s.Renewer = NewRenewer[struct{}](func() Instant {
		return Instant(time.Since(began)) + Instant(s.offset.Load())
	}, func(ttl time.Duration) time.Duration { return 2*time.Millisecond + ttl/1000 })
	return s
}

func (s *testRenewer) RenewAll(renewals []*Renewal[struct{}]) {
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

// lease is a lease of a testRenewer.
type lease struct {
	renewer *testRenewer
	entry   Entry[struct{}]
	end     End
	long    atomic.Int32 // calls of HeldLong
	others  atomic.Int32 // of the last one
}

func (l *lease) Hold() *struct{}          { return nil }
func (l *lease) Sender() Sender[struct{}] { return l.renewer }
func (l *lease) End(cause error)          { l.end.Set(cause) }
func (l *lease) Renewed(Answer)           {}
func (l *lease) Done() <-chan struct{}    { return l.end.Context(context.Background(), l).Done() }
func (l *lease) EndIfOver()               {}

func (l *lease) HeldLong(others int) {
	l.long.Add(1)
	l.others.Store(int32(others))
}

func (l *lease) Lost(cause error) {
	l.renewer.mu.Lock()
	defer l.renewer.mu.Unlock()
	l.renewer.lost = append(l.renewer.lost, cause)
}

// lease makes a lease that was granted by a request sent now, for its whole TTL.
func (s *testRenewer) lease(t *testing.T, terms Terms) *lease {
	t.Helper()
	terms.Granted = terms.TTL
	return s.grant(t, terms)
}

// grant makes a lease that was granted by a request sent now.
func (s *testRenewer) grant(t *testing.T, terms Terms) *lease {
	t.Helper()
	l := &lease{renewer: s}
	terms.SentAt = s.now()
	if !s.Add(&l.entry, l, terms) {
		t.Fatal("not added")
	}
	return l
}

// times returns when renewals were sent.
func (s *testRenewer) times() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}

func (s *testRenewer) losses() []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.lost)
}

var minute = Terms{TTL: time.Minute}

// TestRenewedEachThird: a lease is renewed each third of its TTL until it is removed. It can be removed once.
func TestRenewedEachThird(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestRenewer(func(_ int, answer func(bool, error)) { answer(true, nil) })
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

// TestUnansweredRenewalsAreRepeatedUntilTheEnd: a lease whose renewals get no answer ends in time, after at least three.
func TestUnansweredRenewalsAreRepeatedUntilTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestRenewer(func(int, func(bool, error)) {})
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

// TestTwoLostRenewalsAreSurvived: a lease stays valid if only every third renewal succeeds.
func TestTwoLostRenewalsAreSurvived(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestRenewer(func(n int, answer func(bool, error)) {
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

// TestShortGrantIsRenewedInTime: a grant for less than its TTL also survives two renewals without an answer. The first waiter
// of a queue gets such a grant.
func TestShortGrantIsRenewedInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestRenewer(func(n int, answer func(bool, error)) {
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
		if first := s.times()[0]; first > provisionalLimit {
			t.Errorf("the first renewal was sent after %v", first)
		}
		if n := len(s.times()); n < 4 || n > 6 {
			t.Errorf("renewals at %v: one each third of the TTL after the first answer", s.times())
		}
		s.Close()
	})
}

// TestLateAnswerCountsFromSending: the validity counts from the sending of a renewal, however late the answer is.
func TestLateAnswerCountsFromSending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const delay = 15 * time.Second
		s := newTestRenewer(func(n int, answer func(bool, error)) {
			if n == 1 {
				time.AfterFunc(delay, func() { answer(true, nil) })
			}
		})
		l := s.lease(t, minute)
		<-l.Done()
		want := s.TrustedUntil(Instant(s.times()[0]), time.Minute)
		if s.now() != want {
			t.Errorf("ended at %v, want %v, a TTL after the renewal was sent", time.Duration(s.now()), time.Duration(want))
		}
	})
}

// TestRefusedRenewalIsLossAtOnce: if Redis does not have the hold, the lease ends at that answer and is reported once.
func TestRefusedRenewalIsLossAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestRenewer(func(_ int, answer func(bool, error)) { answer(false, nil) })
		l := s.lease(t, minute)
		<-l.Done()
		synctest.Wait() // Lost follows End
		if s.now() > Instant(21*time.Second) {
			t.Errorf("ended after %v", time.Duration(s.now()))
		}
		if got := s.losses(); len(got) != 1 || !errors.Is(got[0], Taken) {
			t.Errorf("losses %v", got)
		}
	})
}

// TestAnswerAfterUnlockIsIgnored: a renewal that was in flight when the lease was unlocked changes nothing.
func TestAnswerAfterUnlockIsIgnored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestRenewer(func(_ int, answer func(bool, error)) {
			time.AfterFunc(time.Second, func() { answer(false, nil) })
		})
		l := s.lease(t, minute)
		time.Sleep(20*time.Second + 500*time.Millisecond)
		synctest.Wait()
		if len(s.times()) != 1 || !s.Remove(&l.entry) {
			t.Fatalf("%d renewals in flight", len(s.times()))
		}
		time.Sleep(time.Minute)
		if got := s.losses(); len(got) != 0 {
			t.Errorf("losses %v", got)
		}
	})
}

// TestSuspendEndsLeases: leases that expired in a suspend end soon after it. The clock continues meanwhile, the timers do not.
func TestSuspendEndsLeases(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestRenewer(func(_ int, answer func(bool, error)) { answer(true, nil) })
		l := s.lease(t, minute)
		time.Sleep(time.Second)
		s.offset.Store(int64(2 * time.Minute))
		if left := s.ValidUntil(&l.entry).Sub(s.now()); left > 0 {
			t.Errorf("looks valid for %v after the suspend", left)
		}
		time.Sleep(maxSleepLimit)
		synctest.Wait()
		if l.end.Cause() == nil {
			t.Error("the lease was not ended within maxSleepLimit after the suspend")
		}
	})
}

// TestFixedAndBoundedLeasesEnd: a lease without renewals ends with its TTL, one with MaxHold when that has passed.
func TestFixedAndBoundedLeasesEnd(t *testing.T) {
	t.Parallel()
	for name, terms := range map[string]Terms{
		"fixed":    {TTL: time.Minute, Fixed: true},
		"max hold": {TTL: time.Minute, MaxHold: 150 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newTestRenewer(func(_ int, answer func(bool, error)) { answer(true, nil) })
			l := s.lease(t, terms)
			<-l.Done()
			want := Instant(terms.MaxHold)
			if terms.Fixed {
				want = s.TrustedUntil(0, terms.TTL)
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

// TestExtendedLeaseOutlivesItsTTL: an extended lease ends with the longest extension. A lease that has ended is not extended.
func TestExtendedLeaseOutlivesItsTTL(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestRenewer(nil)
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

// TestQueuedRenewalsAreNotMultiplied: while renewals cannot be sent, each lease has only one in the queue.
func TestQueuedRenewalsAreNotMultiplied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestRenewer(func(int, func(bool, error)) {})
		s.busy.Store(true)
		l := s.lease(t, minute)
		<-l.Done()
		if n := len(s.times()); n != 1 {
			t.Errorf("%d renewals were queued", n)
		}
	})
}

// TestManyLeasesShareRounds: leases that are taken one after the other within a second are renewed in few batches.
func TestManyLeasesShareRounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestRenewer(func(_ int, answer func(bool, error)) { answer(true, nil) })
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

// TestInUse: InUse is called at once after the first lease was added, every second while there are leases, and once more if the
// Renewer is closed before it was called with a new lease.
func TestInUse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestRenewer(nil)
		var mu sync.Mutex // calls come from goroutines of their own
		var longest []time.Duration
		s.InUse = func(_ Instant, ttl time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			longest = append(longest, ttl)
		}
		one := s.lease(t, minute)
		synctest.Wait()
		two := s.lease(t, Terms{TTL: 2 * time.Minute})
		time.Sleep(2500 * time.Millisecond)
		s.Remove(&one.entry)
		s.Remove(&two.entry)
		time.Sleep(time.Minute)
		s.lease(t, Terms{TTL: time.Hour})
		s.Close()
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if want := []time.Duration{time.Minute, 2 * time.Minute, 0, time.Hour}; !slices.Equal(longest, want) {
			t.Errorf("called with %v, want %v", longest, want)
		}
	})
}
