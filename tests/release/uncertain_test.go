package release_test

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// lateRequest is a server behind a relay, and a client whose first request of a name is held back. The client sends it again on
// another connection, and that one is answered.
type lateRequest struct {
	t      *testing.T
	server *testkit.Server
	rdb    *redis.Client
	relay  *testkit.Relay
	locks  *core.Client
	goOn   func()
}

func newLateRequest(t *testing.T) *lateRequest {
	t.Helper()
	t.Parallel()
	server := testkit.Start(t)
	l := &lateRequest{t: t, server: server, rdb: server.Client(), relay: server.Relay()}
	// Where the direct path is not taken, because the machine is busy, the read timeout has the request sent again.
	l.locks = coretest.NewClient(t, l.relay.Client(func(o *redis.Options) { o.ReadTimeout = time.Second }), core.WithTTL(coretest.Long))
	coretest.Unlock(t, coretest.MustLock(t, l.locks.Mutex("warm")))
	return l
}

// hold keeps the next request about the key from the server until arrive is called.
func (l *lateRequest) hold(key string) {
	pass := make(chan struct{})
	l.goOn = sync.OnceFunc(func() { close(pass) })
	l.t.Cleanup(l.goOn) // the relay could not be closed otherwise
	coretest.Nth(l.relay, key, 1, func() { <-pass })
}

// holdSecond keeps the second script about the key from the server until arrive is called. The channel gets a value then.
func (l *lateRequest) holdSecond(key string) <-chan struct{} {
	pass, caught := make(chan struct{}), make(chan struct{})
	l.goOn = sync.OnceFunc(func() { close(pass) })
	l.t.Cleanup(l.goOn)
	var seen atomic.Int32
	l.relay.OnRequest(func(chunk []byte) {
		if bytes.Contains(chunk, []byte(key)) && bytes.Contains(chunk, []byte("evalsha")) && seen.Add(1) == 2 {
			close(caught)
			<-pass
		}
	})
	return caught
}

// age makes time pass for the marks of holds.
func (l *lateRequest) age(after time.Duration) {
	ctx := context.Background()
	for _, key := range l.rdb.Keys(ctx, "holdfast:released*").Val() {
		if rest := l.rdb.PTTL(ctx, key).Val() - after; rest > 0 {
			l.rdb.PExpire(ctx, key, rest)
		} else {
			l.rdb.Del(ctx, key)
		}
	}
}

// arrive lets the request continue after a while, for which the marks of ended holds have been kept.
func (l *lateRequest) arrive(after time.Duration) {
	l.t.Helper()
	l.age(after)
	calls := l.server.CommandStats()["evalsha"].Calls
	l.goOn()
	testkit.Eventually(l.t, coretest.Within, "the late request to be executed", func() bool {
		return l.server.CommandStats()["evalsha"].Calls > calls
	})
}

// bars waits until late requests of a granted hold are refused.
func (l *lateRequest) bars() {
	l.t.Helper()
	testkit.Eventually(l.t, coretest.Within, "late requests to be refused", func() bool {
		for _, key := range l.rdb.Keys(context.Background(), "holdfast:released*").Val() {
			if l.rdb.Get(context.Background(), key).Val() == "-" {
				return true
			}
		}
		return false
	})
}

func (l *lateRequest) wantFree(key string) {
	l.t.Helper()
	if l.rdb.Exists(context.Background(), key).Val() != 0 {
		l.t.Errorf("%s was granted to a request whose call has ended", key)
	}
}

// TestRequestArrivesAfterItsHold: a request whose answer was lost is repeated and granted; its first copy arrives long
// after the release, and is refused.
func TestRequestArrivesAfterItsHold(t *testing.T) {
	for name := range coretest.Strategies(nil) {
		t.Run(name, func(t *testing.T) {
			l := newLateRequest(t)
			l.hold("lock:name")
			lease := coretest.MustLock(t, coretest.Strategies(l.locks)[name]("name"))
			l.bars()
			l.age(time.Hour) // the lock is held for longer than its grant bars the request
			coretest.Unlock(t, lease)
			l.arrive(time.Minute)
			l.wantFree("lock:name")
		})
	}
	t.Run("Multi", func(t *testing.T) {
		l := newLateRequest(t)
		l.hold("lock:name")
		coretest.Unlock(t, coretest.MustLock(t, core.Multi(l.locks.Mutex("name"), l.locks.Mutex("other"))))
		l.arrive(time.Minute)
		l.wantFree("lock:name")
		l.wantFree("lock:other")
	})
}

// TestReentryArrivesAfterItsHold: the owner is still in by another hold, whose release frees the lock.
func TestReentryArrivesAfterItsHold(t *testing.T) {
	for name := range coretest.Strategies(nil) {
		t.Run(name, func(t *testing.T) {
			l := newLateRequest(t)
			lock := coretest.Strategies(l.locks)[name]("name")
			outer := coretest.MustLock(t, lock)
			l.hold("lock:name")
			coretest.Unlock(t, coretest.MustLockWith(t, outer.Context(), lock))
			l.arrive(time.Minute)
			coretest.Unlock(t, outer)
			l.wantFree("lock:name")
		})
	}
}

// TestRequestArrivesAfterALeaseThatRanOut: nothing is released then, and late requests are refused all the same.
func TestRequestArrivesAfterALeaseThatRanOut(t *testing.T) {
	for name := range coretest.Strategies(nil) {
		t.Run(name, func(t *testing.T) {
			l := newLateRequest(t)
			l.hold("lock:name")
			lease := coretest.MustLock(t, coretest.Strategies(l.locks)[name]("name"), core.WithTTL(3*time.Second))
			l.bars()
			lease.Abandon()
			coretest.Gone(t, l.rdb, "lock:name")
			l.arrive(time.Minute)
			l.wantFree("lock:name")
		})
	}
}

// TestRequestArrivesAfterItsWaiter: a waiter whose first request was answered asks again. It is granted the lock by a release,
// and gives up before its second request arrives.
func TestRequestArrivesAfterItsWaiter(t *testing.T) {
	for name := range coretest.Strategies(nil) {
		t.Run(name, func(t *testing.T) {
			l := newLateRequest(t)
			others := coretest.NewClient(t, l.rdb, core.WithTTL(coretest.Long))
			held := coretest.MustLock(t, others.Write("name"))
			caught := l.holdSecond("lock:name")
			ctx, cancel := context.WithCancel(t.Context())
			waiting := coretest.LockUntil(ctx, coretest.Strategies(l.locks)[name]("name"))
			coretest.WaitFor(t, caught, "the waiter to ask again")
			coretest.Unlock(t, held) // grants the lock to a waiter in the queue
			cancel()
			if err := coretest.Receive(t, waiting); err != nil {
				coretest.WantErr(t, err, context.Canceled) // otherwise the waiter has sent the request again before
			}
			if err := l.locks.Close(); err != nil { // after its releases in the background
				t.Fatal(err)
			}
			l.arrive(time.Minute)
			l.wantFree("lock:name")
		})
	}
}

// TestRequestArrivesAfterAGrantByMessage: the lease of the grant expires, and nothing is released then.
func TestRequestArrivesAfterAGrantByMessage(t *testing.T) {
	for name := range coretest.OnlyQueued(nil) {
		t.Run(name, func(t *testing.T) {
			l := newLateRequest(t)
			held := coretest.MustLock(t, coretest.NewClient(t, l.rdb, core.WithTTL(coretest.Long)).Write("name"))
			caught := l.holdSecond("lock:name")
			waiting := coretest.LeaseLater(t, coretest.Strategies(l.locks)[name]("name"), core.WithTTL(3*time.Second))
			coretest.WaitFor(t, caught, "the waiter to ask again")
			calls := l.server.CommandStats()["evalsha"].Calls
			testkit.Eventually(t, coretest.Within, "the request to be repeated", func() bool {
				return l.server.CommandStats()["evalsha"].Calls > calls
			})
			coretest.Unlock(t, held)
			lease := coretest.AwaitLease(t, waiting)
			l.bars()
			lease.Abandon()
			coretest.Gone(t, l.rdb, "lock:name")
			l.arrive(time.Minute)
			l.wantFree("lock:name")
		})
	}
}

// TestBeginArrivesAfterItsAttempt: no attempt begins that no caller has.
func TestBeginArrivesAfterItsAttempt(t *testing.T) {
	ctx := context.Background()
	for name, end := range map[string]func(a *core.Attempt) error{
		"Release":  func(a *core.Attempt) error { return a.Release(ctx) },
		"Complete": func(a *core.Attempt) error { return a.Complete(ctx, nil) },
		"Hold":     func(a *core.Attempt) error { return a.Hold(ctx, "reason") },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLateRequest(t)
			l.hold("once:{lock:name}")
			once := l.locks.Once("name", core.WithFailurePolicy(core.HoldFailures))
			if err := end(coretest.MustBegin(t, once)); err != nil {
				t.Fatal(err)
			}
			if err := coretest.ForgetNow(ctx, once); err != nil {
				t.Fatal(err)
			}
			l.arrive(time.Minute)
			coretest.WantState(t, l.locks.Once("name"), core.StateNone, 0)
		})
	}
}

// TestBeginArrivesAfterALostAttempt: another attempt has followed and ended.
func TestBeginArrivesAfterALostAttempt(t *testing.T) {
	l := newLateRequest(t)
	l.hold("once:{lock:name}")
	once := l.locks.Once("name")
	first := coretest.MustBegin(t, l.locks.Once("name", core.WithTTL(3*time.Second)))
	l.bars()
	first.Abandon()
	second, err := l.locks.Once("name", core.WithWait(coretest.Within)).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.arrive(time.Minute)
	coretest.WantState(t, once, core.StateNone, 2)
}
