package waiting_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// grants records the owner of each grant, by token. Lease.Owner would keep the lease from being handed over.
type grants struct {
	mu     sync.Mutex
	owners map[int64]string
	count  map[string]int // by owner
	ends   int            // of releases

	renewed atomic.Bool // true if a lease was renewed
}

func newGrants() *grants { return &grants{owners: make(map[int64]string), count: make(map[string]int)} }

func (g *grants) hooks() core.Option {
	return core.WithHooks(core.Hooks{
		AcquireEnd: func(_ context.Context, e core.AcquireEnd) {
			if e.Err == nil {
				g.mu.Lock()
				defer g.mu.Unlock()
				g.owners[e.Token] = e.Owner
				g.count[e.Owner]++
			}
		},
		Renewed: func(context.Context, core.Renewed) { g.renewed.Store(true) },
		ReleaseEnd: func(context.Context, core.ReleaseEnd) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.ends++
		},
	})
}

// owner returns the owner of a grant. AcquireEnd has returned before Lock does.
func (g *grants) owner(l *core.Lease) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.owners[l.Token()]
}

// longest returns how many grants one owner had at most.
func (g *grants) longest() (most int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, n := range g.count {
		most = max(most, n)
	}
	return most
}

// chain is a lease that its client may hand over, and a waiter behind it.
type chain struct {
	t      testing.TB
	grants *grants
	server *testkit.Server
	locks  *core.Client
	name   string
	first  *core.Lease
	second <-chan *core.Lease
}

// handedOver waits for the lease of the second, and returns true if the hold is that of the first.
func (c *chain) handedOver() (*core.Lease, bool) {
	c.t.Helper()
	next := coretest.AwaitLease(c.t, c.second)
	if next.Token() <= c.first.Token() {
		c.t.Errorf("token %d after %d", next.Token(), c.first.Token())
	}
	return next, c.grants.owner(next) == c.grants.owner(c.first)
}

// forChains runs a test with new chains until it returns true, which it must return if the hold was handed over. A busy machine
// may need more time than a chain has.
func forChains(t *testing.T, run func(c *chain) bool, waiterOpts ...core.LockOption) {
	t.Helper()
	c := &chain{t: t, grants: newGrants(), server: testkit.Start(t)}
	c.locks = coretest.NewClient(t, c.server.Client(), core.WithTTL(coretest.Long), c.grants.hooks())
	for i := range 300 {
		c.name = fmt.Sprint("name", i)
		c.start(waiterOpts)
		done := run(c)
		switch {
		case t.Failed():
			return
		case done:
			coretest.AwaitTidy(t, c.server.Client())
			return
		}
	}
	t.Error("no hold was handed over")
}

// start makes a chain of two callers: both wait for a holder.
func (c *chain) start(waiterOpts []core.LockOption) {
	c.t.Helper()
	holder := coretest.MustLock(c.t, c.locks.Mutex(c.name))
	first := coretest.LeaseLater(c.t, c.locks.Mutex(c.name))
	c.awaitWaiting(1)
	c.second = coretest.LeaseLater(c.t, c.locks.Mutex(c.name, waiterOpts...))
	c.awaitWaiting(2)
	coretest.Unlock(c.t, holder)
	c.first = coretest.AwaitLease(c.t, first)
}

func (c *chain) awaitWaiting(n int) {
	c.t.Helper()
	testkit.Eventually(c.t, coretest.Within, "callers to wait", func() bool { return len(c.locks.Waiting()) == n })
}

// TestHandOver: the next waiter of the same process gets the hold with a token of its own, and everybody sees its grant.
func TestHandOver(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	forChains(t, func(c *chain) bool {
		until := c.first.ValidUntil()
		time.Sleep(5 * time.Millisecond) // it counts as held
		c.grants.renewed.Store(false)
		coretest.Unlock(t, c.first)
		second, handed := c.handedOver()
		if handed {
			if got := second.ValidUntil(); got.After(until.Add(time.Millisecond)) && !c.grants.renewed.Load() {
				t.Errorf("valid for %v longer than the hold that was handed over", got.Sub(until))
			}
			held := c.locks.Held()
			if len(held) != 1 || held[0].Token != second.Token() || held[0].Owner != c.grants.owner(c.first) {
				t.Errorf("held: %+v", held)
			}
			info := coretest.MustInspect(t, c.locks, c.name)
			if len(info.Holders) != 1 || info.Holders[0].Owner != held[0].Owner || info.Holders[0].Token != c.first.Token() {
				t.Errorf("in Redis: %+v", info.Holders)
			}
			if c.first.Context().Err() == nil || !errors.Is(context.Cause(c.first.Context()), core.ErrNotHeld) {
				t.Errorf("the context of the former lease: %v", context.Cause(c.first.Context()))
			}
			coretest.WantErr(t, c.first.Unlock(ctx), core.ErrNotHeld)
			coretest.WantErr(t, c.first.Extend(ctx, time.Minute), core.ErrNotHeld)
			c.first.Abandon()
		}
		coretest.Unlock(t, second)
		later := coretest.MustLock(t, coretest.NewClient(t, c.server.Client()).Mutex(c.name))
		if later.Token() <= second.Token() {
			t.Errorf("token %d after %d", later.Token(), second.Token())
		}
		coretest.Unlock(t, later)
		return handed
	})
}

// TestHandOverReentry: the context of the former lease is that of no holder, whatever its end; that of the present one is.
func TestHandOverReentry(t *testing.T) {
	t.Parallel()
	forChains(t, func(c *chain) bool {
		former := context.WithoutCancel(c.first.Context())
		coretest.Unlock(t, c.first)
		second, handed := c.handedOver()
		if _, err := c.locks.Mutex(c.name).TryLock(former); !errors.Is(err, core.ErrNotAcquired) {
			t.Errorf("with the former context: %v", err)
		}
		inner := coretest.MustLockWith(t, second.Context(), c.locks.Mutex(c.name))
		if inner.Token() != second.Token() || inner.Owner() != second.Owner() {
			t.Errorf("re-entered as %s with %d, not %s with %d", inner.Owner(), inner.Token(), second.Owner(), second.Token())
		}
		other := coretest.NewClient(t, c.server.Client())
		elsewhere := coretest.MustLockWith(t, second.Context(), core.Multi(c.locks.Mutex(c.name), c.locks.Mutex(c.name+"b")))
		if elsewhere.Token() < second.Token() {
			t.Errorf("token %d of locks that were entered with token %d", elsewhere.Token(), second.Token())
		}
		coretest.Unlock(t, elsewhere)
		coretest.Unlock(t, second)
		coretest.WantErr(t, coretest.TryLock(other.Mutex(c.name)), core.ErrNotAcquired)
		coretest.Unlock(t, inner)
		return handed
	})
}

// TestNotHandedOver: a hold that another call may have entered is released in Redis, so the next waiter waits for that call too.
func TestNotHandedOver(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, enter := range map[string]func(c *chain) *core.Lease{
		"re-entered": func(c *chain) *core.Lease {
			return coretest.MustLockWith(t, c.first.Context(), c.locks.Mutex(c.name))
		},
		"re-entered by another client": func(c *chain) *core.Lease {
			return coretest.MustLockWith(t, c.first.Context(), coretest.NewClient(t, c.server.Client(), core.WithTTL(coretest.Long)).Mutex(c.name))
		},
		"re-entered in a Multi": func(c *chain) *core.Lease {
			return coretest.MustLockWith(t, c.first.Context(), core.Multi(c.locks.Mutex(c.name), c.locks.Mutex(c.name+"b")))
		},
		"entered by name": func(c *chain) *core.Lease {
			return coretest.MustLock(t, coretest.NewClient(t, c.server.Client(), core.WithTTL(coretest.Long)).Mutex(c.name), core.WithOwner(c.first.Owner()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rounds := 0
			forChains(t, func(c *chain) bool {
				c.t = t
				var left atomic.Bool
				inner := enter(c)
				coretest.Unlock(t, c.first)
				time.Sleep(3 * time.Millisecond) // in which the second must not get the lock
				select {
				case l := <-c.second:
					t.Errorf("granted token %d beside the inner lease", l.Token())
					return true
				default:
				}
				left.Store(true)
				coretest.Unlock(t, inner)
				second, handed := c.handedOver()
				if handed {
					t.Error("handed over")
				}
				coretest.Unlock(t, second)
				rounds++
				return rounds == 5
			})
		})
	}
	for name, end := range map[string]func(*core.Lease) error{
		"extended": func(l *core.Lease) error {
			if err := l.Extend(ctx, 2*coretest.Long); err != nil {
				return err
			}
			return l.Unlock(ctx)
		},
		"held for long": func(l *core.Lease) error { time.Sleep(25 * time.Millisecond); return l.Unlock(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rounds := 0
			forChains(t, func(c *chain) bool {
				if err := end(c.first); err != nil {
					t.Error(err)
				}
				second, handed := c.handedOver()
				if handed {
					t.Error("handed over")
				}
				coretest.Unlock(t, second)
				rounds++
				return rounds == 5
			})
		})
	}
}

// TestWaiterNotHandedTo: a waiter that asks for more than the hold has asks Redis.
func TestWaiterNotHandedTo(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]core.LockOption{
		"another TTL": core.WithTTL(coretest.Long + time.Second),
		"fixed TTL":   core.WithFixedTTL(coretest.Long),
		"min hold":    core.WithMinHold(10 * time.Millisecond),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rounds := 0
			forChains(t, func(c *chain) bool {
				coretest.Unlock(t, c.first)
				second, handed := c.handedOver()
				if handed {
					t.Error("handed over")
				}
				coretest.Unlock(t, second)
				rounds++
				return rounds == 5
			}, opt)
		})
	}
}

// TestHandOverForced: ForceUnlock of the hold that Inspect shows ends the lease that has it, and the next owner does not share it.
func TestHandOverForced(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	forChains(t, func(c *chain) bool {
		coretest.Unlock(t, c.first)
		second, handed := c.handedOver()
		operator := coretest.NewClient(t, c.server.Client())
		if forced, err := operator.ForceUnlockSeen(ctx, coretest.MustInspect(t, operator, c.name)); !forced || err != nil {
			t.Errorf("forced: %t, %v", forced, err)
		}
		next := coretest.MustLock(t, operator.Mutex(c.name))
		if next.Token() <= second.Token() {
			t.Errorf("token %d after %d", next.Token(), second.Token())
		}
		coretest.WantErr(t, second.Unlock(ctx), core.ErrNotHeld)
		coretest.Unlock(t, next)
		return handed
	})
}

// TestHandOverAfterForce: a hold that an operator takes during a chain may be handed over, because Redis is not asked. The lease that
// outlives the chain learns it long before its next renewal would be due.
func TestHandOverAfterForce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	forChains(t, func(c *chain) bool {
		operator := coretest.NewClient(t, c.server.Client())
		if forced, err := operator.ForceUnlock(ctx, c.name); !forced || err != nil {
			t.Errorf("forced: %t, %v", forced, err)
		}
		err := c.first.Unlock(ctx)
		second := coretest.AwaitLease(t, c.second)
		handed := err == nil
		if handed {
			coretest.WaitFor(t, second.Done(), "the loss")
			if cause := context.Cause(second.Context()); !errors.Is(cause, core.ErrLeaseLost) {
				t.Errorf("cause: %v", cause)
			}
		}
		_ = second.Unlock(ctx) // lost if it was handed over
		return handed
	})
}

// TestHandOverLost: a lease that was handed over is renewed, and is lost when its hold is gone.
func TestHandOverLost(t *testing.T) {
	t.Parallel()
	server, g := testkit.Start(t), newGrants()
	c := &chain{t: t, grants: g, server: server, locks: coretest.NewClient(t, server.Client(), core.WithTTL(time.Second), g.hooks())}
	for i := range 300 {
		c.name = fmt.Sprint("name", i)
		c.start(nil)
		coretest.Unlock(t, c.first)
		second, handed := c.handedOver()
		if !handed {
			coretest.Unlock(t, second)
			continue
		}
		coretest.AwaitRenewal(t, second)
		server.Client().Del(context.Background(), "lock:"+c.name)
		coretest.WaitFor(t, second.Done(), "the loss")
		if cause := context.Cause(second.Context()); !errors.Is(cause, core.ErrLeaseLost) {
			t.Errorf("cause: %v", cause)
		}
		return
	}
	t.Error("no hold was handed over")
}

// TestHandOverBounds: however many callers of a process wait, another process gets its turn after a bounded time and number, and
// waiters are served in order.
func TestHandOverBounds(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]time.Duration{"number": 0, "time": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			passages, most := int64(3000), 1024
			if hold > 0 {
				passages, most = 600, 21 // within 20 ms
			}
			server, g := testkit.Start(t), newGrants()
			locks := coretest.NewClient(t, server.Client(), core.WithTTL(coretest.Long), g.hooks())
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var all sync.WaitGroup
			var last, passed atomic.Int64
			var inside atomic.Int32
			pass := func(l *core.Lock, by context.Context) error {
				lease, err := l.Lock(by)
				if err != nil {
					return err
				}
				if inside.Add(1) != 1 {
					t.Error("two are inside")
				}
				if before := last.Swap(lease.Token()); before >= lease.Token() {
					t.Errorf("token %d after %d", lease.Token(), before)
				}
				time.Sleep(hold)
				passed.Add(1)
				inside.Add(-1)
				return lease.Unlock(context.Background())
			}
			for range 8 {
				all.Go(func() {
					for ctx.Err() == nil {
						if err := pass(locks.Mutex("name"), ctx); err != nil && !errors.Is(err, context.Canceled) {
							t.Error(err)
						}
					}
				})
			}
			other := coretest.NewClient(t, server.Client())
			for range 5 {
				before := passed.Load()
				testkit.Eventually(t, coretest.Within, "passages", func() bool { return passed.Load() > before+passages })
				if err := pass(other.Mutex("name"), context.Background()); err != nil {
					t.Error(err)
				}
			}
			cancel()
			all.Wait()
			if n := g.longest(); n > most || n == 1 {
				t.Errorf("one grant of Redis served %d callers, want 2 to %d", n, most)
			}
			coretest.AwaitTidy(t, server.Client())
		})
	}
}

// TestHandOverGivenUp: waiters give up at any moment, and clients close. No hold is lost, and none is left.
func TestHandOverGivenUp(t *testing.T) {
	t.Parallel()
	server, g := testkit.Start(t), newGrants()
	var all sync.WaitGroup
	var inside atomic.Int32
	for range 3 {
		locks := coretest.NewClient(t, server.Client(), core.WithTTL(coretest.Long), g.hooks())
		for range 16 {
			all.Go(func() {
				for range 150 {
					ctx, cancel := context.WithTimeout(context.Background(), rand.N(3*time.Millisecond))
					lease, err := locks.Mutex("name").Lock(ctx)
					cancel()
					switch {
					case errors.Is(err, core.ErrClosed):
						return
					case err != nil:
						continue
					}
					if inside.Add(1) != 1 {
						t.Error("two are inside")
					}
					time.Sleep(rand.N(50 * time.Microsecond))
					inside.Add(-1)
					_ = lease.Unlock(context.Background()) // Close may have released it
				}
			})
		}
		time.AfterFunc(rand.N(300*time.Millisecond), func() { _ = locks.Close() })
	}
	all.Wait()
	coretest.Unlock(t, coretest.MustLock(t, coretest.NewClient(t, server.Client()).Mutex("name"), core.WithWait(coretest.Within)))
	coretest.AwaitTidy(t, server.Client())
}

// TestHandOverHookPanics: a hook that panics during Unlock costs the waiters nothing but a release in Redis.
func TestHandOverHookPanics(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	var panics atomic.Bool
	locks := coretest.NewClient(t, server.Client(), core.WithTTL(coretest.Long), core.WithHooks(core.Hooks{
		ReleaseStart: func(ctx context.Context, _ core.ReleaseStart) context.Context {
			if panics.CompareAndSwap(true, false) {
				panic("hook")
			}
			return ctx
		},
	}))
	c := &chain{t: t, grants: newGrants(), server: server, locks: locks, name: "name"}
	for range 10 {
		c.start(nil)
		panics.Store(true)
		func() {
			defer func() { _ = recover() }()
			_ = c.first.Unlock(context.Background())
			t.Error("no panic")
		}()
		coretest.Unlock(t, coretest.AwaitLease(t, c.second))
	}
	coretest.AwaitTidy(t, server.Client())
}
