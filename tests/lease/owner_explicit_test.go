package lease_test

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestExplicitOwnerEntersFromAnotherProcess: an owner that WithOwner names gets the lock in one process, while calls for
// it wait in another one, behind other callers. They enter, though nothing is released.
func TestExplicitOwnerEntersFromAnotherProcess(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	nodes := coretest.StartMasters(t, 3)
	for _, name := range []string{"Mutex", "Fair", "Write", "FairWrite", "Redlock"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			waits := make(chan struct{}, 100)
			process := func() *core.Lock {
				hooks := core.WithHooks(core.Hooks{Wait: func(context.Context, core.Wait) { waits <- struct{}{} }})
				if name == "Redlock" {
					return nodes.Redlock(t, hooks).Mutex("name")
				}
				return coretest.Strategies(coretest.NewClient(t, server.Client(), hooks))[name](name)
			}
			holder := coretest.MustLock(t, process(), core.WithTTL(coretest.Long))
			one, other := process(), process()
			first := lockWaiting(t, waits, one, core.WithOwner("x"))
			before := lockWaiting(t, waits, other)
			second := lockWaiting(t, waits, other, core.WithOwner("x"))
			third := lockWaiting(t, waits, other, core.WithOwner("x"))
			passed := make(chan struct{})
			go func() {
				defer close(passed)
				if lease := <-before; lease != nil { // between processes it may be first, with a Mutex
					coretest.Unlock(t, lease)
				}
			}()
			coretest.Unlock(t, holder)
			held := []*core.Lease{<-first, <-second, <-third}
			for _, lease := range held {
				if lease == nil {
					t.FailNow()
				}
				coretest.Unlock(t, lease)
			}
			<-passed
		})
	}
}

// lockWaiting locks in another goroutine, and returns once a hook has told that the caller waits. What it returns gets
// nil if the lock is refused.
func lockWaiting(t *testing.T, waits <-chan struct{}, l *core.Lock, opts ...core.LockOption) <-chan *core.Lease {
	t.Helper()
	got := make(chan *core.Lease, 1)
	go func() {
		lease, err := l.Lock(context.Background(), append(opts, core.WithTTL(coretest.Long), core.WithWait(2*coretest.Within))...)
		if err != nil {
			t.Errorf("lock: %v", err)
		}
		got <- lease
	}()
	coretest.WaitFor(t, waits, "the caller to wait")
	return got
}

// TestExplicitOwnerWithAShare: an owner waits to write in one process, and gets a share in another one. It would
// wait for itself, so it gets an error.
func TestExplicitOwnerWithAShare(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	one, other := coretest.NewClient(t, server.Client()), coretest.NewClient(t, server.Client())
	holder := coretest.MustLock(t, one.Write("name"), core.WithTTL(coretest.Long))
	queued := func(n int) func() bool {
		return func() bool {
			info, err := one.Inspect(ctx, "name")
			return err == nil && len(info.Queue) == n
		}
	}
	reading := make(chan *core.Lease, 1)
	go func() {
		lease, err := one.Read("name").Lock(ctx, core.WithOwner("x"), core.WithTTL(coretest.Long))
		if err != nil {
			t.Errorf("read: %v", err)
		}
		reading <- lease
	}()
	testkit.Eventually(t, coretest.Within, "a reader to wait", queued(1))
	writing := make(chan error, 1)
	go func() {
		_, err := other.Write("name").Lock(ctx, core.WithOwner("x"))
		writing <- err
	}()
	testkit.Eventually(t, coretest.Within, "a writer to wait", queued(2))
	coretest.Unlock(t, holder)
	coretest.WantErr(t, coretest.Receive(t, writing), core.ErrUpgrade)
	coretest.Unlock(t, <-reading)
}

// TestNewOwner: whatever the client and the context say, the call is of a new owner, and Redis knows its process.
func TestNewOwner(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	shared := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithOwner("shared"), core.WithInstance("web-1:7"))
	plain := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithInstance("web-1:7"))
	for name, locks := range map[string]*core.Client{"owner of the client": shared, "owner of the context": plain} {
		for strategy, lock := range coretest.Strategies(locks) {
			t.Run(name+"/"+strategy, func(t *testing.T) {
				l := lock(name + strategy)
				outer := coretest.MustLock(t, l)
				lease, err := l.TryLock(outer.Context(), seal.FactsOf(l).NewOwner.(core.LockOption))
				coretest.Unlock(t, outer)
				if lease == nil { // it is no reader's
					coretest.WantErr(t, err, core.ErrNotAcquired)
					lease = coretest.MustLock(t, l, seal.FactsOf(l).NewOwner.(core.LockOption))
				}
				if info := coretest.MustInspect(t, locks, l.Name()); info.Holders[0].Owner != lease.Owner() || info.Holders[0].Instance != "web-1:7" {
					t.Errorf("%+v", info.Holders)
				}
				coretest.Unlock(t, lease)
			})
		}
	}
}

// TestOwnerOfAClient: it is allowed, and the log says once that no lock excludes the calls of that client. An owner of a call
// is not warned of.
func TestOwnerOfAClient(t *testing.T) {
	t.Parallel()
	const line = "WithOwner is set for a whole client"
	rdb, log := testkit.Start(t).Client(), new(coretest.Record)
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithOwner("secret-7"), core.WithLogger(coretest.TextLogger(log)))
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("name")))
	nodes := []redis.UniversalClient{rdb, testkit.Start(t).Client(), testkit.Start(t).Client()}
	redlock, err := core.NewRedlock(nodes, core.WithOwner("secret-7"), core.WithLogger(coretest.TextLogger(log)))
	if err != nil {
		t.Fatal(err)
	}
	_ = redlock.Close()
	if text := log.String(); strings.Count(text, line) != 2 || strings.Contains(text, "secret-7") {
		t.Errorf("a client and a Redlock have logged:\n%s", text)
	}
	quiet := new(coretest.Record)
	plain := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithLogger(coretest.TextLogger(quiet)))
	coretest.Unlock(t, coretest.MustLock(t, plain.Mutex("name"), core.WithOwner("secret-7")))
	if strings.Contains(quiet.String(), line) {
		t.Errorf("a call has logged:\n%s", quiet)
	}
}
