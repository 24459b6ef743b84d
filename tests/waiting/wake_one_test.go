package waiting_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestOneClientIsCalled: however many clients wait, a grant costs few commands, and all of them have their turn.
func TestOneClientIsCalled(t *testing.T) {
	t.Parallel()
	const clients, each, rounds = 8, 3, 20
	server := testkit.Start(t)
	holder := coretest.MustLock(t, coretest.NewClient(t, server.Client()).Mutex("name"), core.WithTTL(coretest.Long))
	var all sync.WaitGroup
	var inside, together atomic.Int32
	for range clients {
		locks := coretest.NewClient(t, server.Client())
		for range each {
			all.Go(func() {
				for range rounds {
					lease, err := locks.Mutex("name").Lock(context.Background())
					if err != nil {
						t.Error(err)
						return
					}
					if inside.Add(1) > 1 {
						together.Add(1)
					}
					time.Sleep(time.Millisecond)
					inside.Add(-1)
					coretest.Unlock(t, lease)
				}
			})
		}
		coretest.AwaitListeners(t, locks, "name", 1)
	}
	testkit.Eventually(t, coretest.Within, "all clients to wait", func() bool {
		return server.Client().ZCard(context.Background(), "holdfast:waiting_clients:{lock:name}").Val() == clients
	})
	before := server.CommandStats()["evalsha"].Calls
	coretest.Unlock(t, holder)
	all.Wait()
	const grants = clients * each * rounds
	asked := float64(server.CommandStats()["evalsha"].Calls-before) / grants
	t.Logf("%.2f commands per grant", asked)
	if asked > clients-2 { // all clients would ask after each release, and one release
		t.Errorf("%.2f commands per grant", asked)
	}
	if n := together.Load(); n > 0 {
		t.Errorf("%d times two were inside", n)
	}
}

// TestWokenClientIsDead: a client that is dead or does not subscribe is woken, and the others poll by themselves.
func TestWokenClientIsDead(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb := server.Client()
	holder := coretest.MustLock(t, coretest.NewClient(t, rdb).Mutex("name"), core.WithTTL(coretest.Long))
	locks := coretest.NewClient(t, server.Client())
	waiting := coretest.LockLater(locks.Mutex("name"))
	awaitCallers(t, rdb, 1)
	rdb.ZAdd(ctx, "holdfast:waiting_clients:{lock:name}", redis.Z{Score: 0, Member: "2305843009213693953"})
	coretest.Unlock(t, holder)
	if err := coretest.Receive(t, waiting); err != nil {
		t.Errorf("waiter: %v", err)
	}
}

// TestCallIsPassedOn: the waiters of the client that is called have left meanwhile.
func TestCallIsPassedOn(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	rdb := server.Client()
	holder := coretest.MustLock(t, coretest.NewClient(t, rdb).Mutex("name"), core.WithTTL(coretest.Long))
	ctx, cancel := context.WithCancel(context.Background())
	gone := coretest.NewClient(t, server.Client())
	left := make(chan error, 1)
	go func() {
		_, err := gone.Mutex("name").Lock(ctx)
		left <- err
	}()
	awaitCallers(t, rdb, 1)
	waiting := coretest.LockLater(coretest.NewClient(t, server.Client()).Mutex("name"))
	awaitCallers(t, rdb, 2)
	cancel()
	coretest.WantErr(t, coretest.Receive(t, left), context.Canceled)
	coretest.Unlock(t, holder)
	if err := coretest.Receive(t, waiting); err != nil {
		t.Errorf("waiter: %v", err)
	}
}

// TestRedissonIsNotifiedOfEveryRelease: its clients listen on the same channel, take every message for a number, and 0 for a
// release, whether our clients wait or not.
func TestRedissonIsNotifiedOfEveryRelease(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb := server.Client()
	java := rdb.Subscribe(ctx, "redisson_lock__channel:{lock:name}")
	defer java.Close()
	if _, err := java.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	locks := coretest.NewClient(t, rdb)
	release := func(lease *core.Lease) {
		t.Helper()
		coretest.Unlock(t, lease)
		for {
			message, err := java.ReceiveTimeout(ctx, coretest.Within)
			if err != nil {
				t.Fatal(err)
			}
			payload := message.(*redis.Message).Payload
			number, err := strconv.ParseInt(payload, 10, 64)
			if err != nil || number == 1 {
				t.Errorf("%q is said", payload)
			}
			if number == 0 {
				return
			}
		}
	}
	lease := coretest.MustLock(t, locks.Mutex("name"))
	release(lease)
	lease = coretest.MustLock(t, locks.Mutex("name"))
	waiting := make(chan *core.Lease, 1)
	other := coretest.NewClient(t, server.Client())
	go func() {
		lease, _ := other.Mutex("name").Lock(ctx)
		waiting <- lease
	}()
	awaitCallers(t, rdb, 1)
	release(lease)
	release(<-waiting)
}

func awaitCallers(t *testing.T, rdb *redis.Client, want int64) {
	t.Helper()
	testkit.Eventually(t, coretest.Within, "clients to wait to be called", func() bool {
		return rdb.ZCard(context.Background(), "holdfast:waiting_clients:{lock:name}").Val() == want
	})
}
