package lease_test

import (
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

// contested is a lock that one owner holds at a time, and the servers on which it lies.
type contested struct {
	lock    func(opts ...core.LockOption) *core.Lock
	servers []*testkit.Server
}

// forget deletes the lock on the first n servers, as an operator might.
func (c contested) forget(t *testing.T, n int) {
	t.Helper()
	for _, server := range c.servers[:n] {
		if err := server.Client().Del(context.Background(), "lock:name", "lock:name too").Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// eachContested runs a test with every exclusive strategy, with both kinds of Multi and with a Redlock.
func eachContested(t *testing.T, test func(t *testing.T, c contested)) {
	single := func(strategy func(c *core.Client, opts ...core.LockOption) *core.Lock) func(t *testing.T) contested {
		return func(t *testing.T) contested {
			server := testkit.Start(t)
			locks := coretest.NewClient(t, server.Client())
			return contested{
				lock:    func(opts ...core.LockOption) *core.Lock { return strategy(locks, opts...) },
				servers: []*testkit.Server{server},
			}
		}
	}
	for name, start := range map[string]func(t *testing.T) contested{
		"Mutex": single(func(c *core.Client, o ...core.LockOption) *core.Lock { return c.Mutex("name", o...) }),
		"Fair":  single(func(c *core.Client, o ...core.LockOption) *core.Lock { return c.Fair("name", o...) }),
		"Write": single(func(c *core.Client, o ...core.LockOption) *core.Lock { return c.Write("name", o...) }),
		"MultiAtOnce": single(func(c *core.Client, o ...core.LockOption) *core.Lock {
			return core.Multi(c.Mutex("name", o...), c.Mutex("name too", o...))
		}),
		"MultiOneByOne": single(func(c *core.Client, o ...core.LockOption) *core.Lock {
			return core.Multi(c.Fair("name", o...), c.Write("name too", o...))
		}),
		"Redlock": func(t *testing.T) contested {
			nodes := coretest.StartMasters(t, 5)
			locks := nodes.Redlock(t, core.WithNodeTimeout(time.Minute)) // no test of time
			return contested{
				lock:    func(opts ...core.LockOption) *core.Lock { return locks.Mutex("name", opts...) },
				servers: nodes.Servers,
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t))
		})
	}
}

// TestOverLeaseMakesNoOwner: goroutines that continue with the context of a lease after its end exclude each other,
// however it has ended.
func TestOverLeaseMakesNoOwner(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, l *core.Lease){
		"Unlocked":  func(t *testing.T, l *core.Lease) { coretest.Unlock(t, l) },
		"Abandoned": func(_ *testing.T, l *core.Lease) { l.Abandon() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachContested(t, func(t *testing.T, c contested) {
				lease := coretest.MustLock(t, c.lock(core.WithTTL(time.Second)))
				ctx := context.WithoutCancel(lease.Context())
				end(t, lease)
				doGrouped(t, ctx, c.lock())
			})
		})
	}
}

// together lets five goroutines of one context enter a lock at the same time, and fails if two of them are in.
func doGrouped(t *testing.T, ctx context.Context, lock *core.Lock) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, coretest.Within)
	defer cancel()
	var all sync.WaitGroup
	var inside, worst atomic.Int32
	for range 5 {
		all.Go(func() {
			lease, err := lock.Lock(ctx, core.WithTTL(coretest.Long))
			if err != nil {
				t.Errorf("lock: %v", err)
				return
			}
			if n := inside.Add(1); n > 1 {
				worst.Store(n)
			}
			time.Sleep(2 * time.Millisecond) // so that another one would meet it
			inside.Add(-1)
			coretest.Unlock(t, lease)
		})
	}
	all.Wait()
	if n := worst.Load(); n > 0 {
		t.Errorf("%d were in at the same time", n)
	}
}

// TestForgottenLeaseMakesNoOwner: Redis has lost the lock and its client does not know that yet. The callers with the
// context of its lease exclude each other.
func TestForgottenLeaseMakesNoOwner(t *testing.T) {
	t.Parallel()
	eachContested(t, func(t *testing.T, c contested) {
		ctx := context.WithoutCancel(coretest.MustLock(t, c.lock(core.WithTTL(coretest.Long))).Context())
		c.forget(t, len(c.servers))
		first := coretest.MustLockWith(t, ctx, c.lock(core.WithTTL(coretest.Long)))
		if _, err := c.lock().TryLock(ctx); err == nil {
			t.Error("the second came in beside the first")
		} else {
			coretest.WantErr(t, err, core.ErrNotAcquired)
		}
		inner, err := c.lock().TryLock(first.Context())
		if err != nil {
			t.Fatalf("the first does not enter again: %v", err)
		}
		coretest.Unlock(t, inner)
		coretest.Unlock(t, first)
		doGrouped(t, ctx, c.lock())
	})
}

// TestForgottenByAMajority: a minority of the servers of a Redlock still has the lease, and would let in every client that
// comes with its context.
func TestForgottenByAMajority(t *testing.T) {
	t.Parallel()
	nodes := coretest.StartMasters(t, 5)
	locks := nodes.Redlock(t, core.WithNodeTimeout(time.Minute)) // no test of time
	c := contested{
		lock:    func(opts ...core.LockOption) *core.Lock { return locks.Mutex("name", opts...) },
		servers: nodes.Servers,
	}
	ctx := context.WithoutCancel(coretest.MustLock(t, c.lock(core.WithTTL(coretest.Long))).Context())
	nodes.AwaitHolders(t, "lock:name", 5) // a request that is on its way yet would give it to one more
	c.forget(t, 3)
	doGrouped(t, ctx, c.lock())
}

// TestParentEndsBeforeTheRequest: between the call and its first request the lease ends, while Redis keeps its hold. The
// request is the request of another owner.
func TestParentEndsBeforeTheRequest(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Mutex", "Fair", "Write", "FairWrite"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var outer atomic.Pointer[core.Lease]
			locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithHooks(core.Hooks{
				AcquireStart: func(ctx context.Context, _ core.AcquireStart) context.Context {
					if l := outer.Load(); l != nil {
						l.Abandon()
					}
					return ctx
				},
			}))
			strategy := coretest.Strategies(locks)[name]
			lease := coretest.MustLock(t, strategy("name"), core.WithTTL(coretest.Long))
			outer.Store(lease)
			_, err := strategy("name").TryLock(context.WithoutCancel(lease.Context()))
			coretest.WantErr(t, err, core.ErrNotAcquired)
			_ = lease.Unlock(context.Background())
			outer.Store(nil)
			coretest.Unlock(t, coretest.MustLock(t, strategy("name"), core.WithWait(coretest.Within)))
		})
	}
}

// TestParentEndsWhileInDoubt: the reply to the first request is lost, and the lease ends before the next one. Nothing is
// left of what the first may have come to.
func TestParentEndsWhileInDoubt(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Mutex", "Fair", "Write"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testkit.Start(t)
			relay := server.Relay()
			locks := coretest.NewClient(t, relay.Client())
			strategy := coretest.Strategies(locks)[name]
			outer := coretest.MustLock(t, strategy("name"), core.WithTTL(coretest.Long))
			inner := coretest.MustLockWith(t, outer.Context(), strategy("name")) // so that the server knows the scripts
			coretest.Unlock(t, inner)
			ctx := context.WithoutCancel(outer.Context())
			relay.LoseReplies("lock:name", 1000, testkit.Silent)
			waiting := make(chan *core.Lease, 1)
			go func() {
				lease, err := strategy("name").Lock(ctx, core.WithTTL(coretest.Long))
				if err != nil {
					t.Error(err)
				}
				waiting <- lease
			}()
			testkit.Eventually(t, coretest.Within, "a reply to be lost", func() bool { return relay.LostReplies() > 0 })
			outer.Abandon()
			relay.Heal()
			testkit.Eventually(t, coretest.Within, "the doubtful hold to be given up", func() bool {
				return holds(t, locks) == 1
			})
			_ = outer.Unlock(context.Background())
			lease := <-waiting
			if lease.Owner() == outer.Owner() {
				t.Error("the owner is still that of the lease that was abandoned")
			}
			coretest.Unlock(t, lease)
		})
	}
}

// holds returns how many times the only holder of a lock has entered it.
func holds(t *testing.T, locks *core.Client) int {
	t.Helper()
	info, err := locks.Inspect(context.Background(), "name")
	if err != nil || len(info.Holders) != 1 {
		return 0
	}
	return info.Holders[0].Holds
}

// TestInnerOutlivesOuter: the outer lease is unlocked first. The context of the inner one still enters, the context of the outer
// one does not any more.
func TestInnerOutlivesOuter(t *testing.T) {
	t.Parallel()
	eachContested(t, func(t *testing.T, c contested) {
		outer := coretest.MustLock(t, c.lock(core.WithTTL(coretest.Long)))
		inner := coretest.MustLockWith(t, outer.Context(), c.lock(core.WithTTL(coretest.Long)))
		deeper := context.WithoutCancel(coretest.MustLockWith(t, inner.Context(), c.lock(core.WithTTL(coretest.Long))).Context())
		coretest.Unlock(t, outer)
		coretest.Unlock(t, coretest.MustLockWith(t, inner.Context(), c.lock()))
		coretest.Unlock(t, coretest.MustLockWith(t, deeper, c.lock()))
		if _, err := c.lock().TryLock(context.WithoutCancel(outer.Context())); err == nil {
			t.Error("the context of the outer lease still enters")
		}
		coretest.Unlock(t, inner)
		coretest.Unlock(t, coretest.MustLockWith(t, deeper, c.lock()))
	})
}

// TestForgottenReader: the context of a share that has expired in Redis neither passes the waiting writer, nor counts
// as an upgrade of another share of its owner.
func TestForgottenReader(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb := server.Client()
	locks := coretest.NewClient(t, server.Client())
	const shares = "holdfast:share_expiries:{lock:name}"
	outer := coretest.MustLock(t, locks.Read("name"), core.WithTTL(coretest.Long))
	coretest.Expand(t, locks, "name")
	expired := rdb.ZRange(ctx, shares, 0, 0).Val()
	inner := coretest.MustLockWith(t, outer.Context(), locks.Read("name"), core.WithTTL(coretest.Long))
	if err := rdb.ZAdd(ctx, shares, redis.Z{Score: 1, Member: expired[0]}).Err(); err != nil {
		t.Fatal(err)
	}
	_, err := locks.Write("name").TryLock(outer.Context())
	coretest.WantErr(t, err, core.ErrNotAcquired)
	_, err = locks.Write("name").TryLock(inner.Context())
	coretest.WantErr(t, err, core.ErrUpgrade)
	writing := coretest.LockLater(locks.Write("name"))
	testkit.Eventually(t, coretest.Within, "a writer to wait", func() bool {
		info, err := locks.Inspect(ctx, "name")
		return err == nil && len(info.Queue) == 1
	})
	_, err = locks.Read("name").TryLock(outer.Context())
	coretest.WantErr(t, err, core.ErrNotAcquired)
	coretest.Unlock(t, coretest.MustLockWith(t, inner.Context(), locks.Read("name")))
	coretest.Unlock(t, inner)
	if err := coretest.Receive(t, writing); err != nil {
		t.Error(err)
	}
}
