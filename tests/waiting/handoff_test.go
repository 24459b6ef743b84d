package waiting_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// queueUp lets waiters of two clients stand in line one after another.
func queueUp(t testing.TB, rdb *redis.Client, name string, n int) []<-chan *core.Lease {
	t.Helper()
	clients := []*core.Client{coretest.NewClient(t, rdb, core.WithTTL(coretest.Long)), coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))}
	var waiting []<-chan *core.Lease
	for i := range n {
		strategies := []core.Strategy{clients[i%2].Fair, clients[i%2].FairWrite, clients[i%2].Write}
		waiting = append(waiting, coretest.LeaseLater(t, strategies[i%len(strategies)](name)))
		coretest.AwaitQueue(t, clients[0], name, 1+i)
	}
	return waiting
}

// servedInOrder lets each waiter unlock as soon as it is in, and checks their tokens.
func servedInOrder(t testing.TB, after int64, waiting []<-chan *core.Lease) {
	t.Helper()
	for i, next := range waiting {
		lease := coretest.AwaitLease(t, next)
		if lease.Token() <= after {
			t.Errorf("waiter %d: token %d came after %d", i, lease.Token(), after)
		}
		after = lease.Token()
		coretest.Unlock(t, lease)
	}
}

// TestEndOfAHolderHandsOver: however a hold of whatever kind ends, those in line get the lock, in order.
func TestEndOfAHolderHandsOver(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, end := range map[string]func(*redis.Client, *testkit.Relay) error{
		"cut off":     func(_ *redis.Client, way *testkit.Relay) error { way.Drop(testkit.Both); return nil },
		"key deleted": func(rdb *redis.Client, _ *testkit.Relay) error { return rdb.Del(ctx, "lock:name").Err() },
		"forced": func(rdb *redis.Client, _ *testkit.Relay) error {
			_, err := coretest.NewClient(t, rdb).ForceUnlock(ctx, "name")
			return err
		},
	} {
		for _, kind := range []string{"Mutex", "Fair", "Read"} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				server := testkit.Start(t)
				rdb, relay := server.Client(), server.Relay()
				ttl := coretest.Long
				if name == "cut off" {
					ttl = 4 * time.Second
				}
				held := coretest.MustLock(t, coretest.Strategies(coretest.NewClient(t, relay.Client(), core.WithTTL(ttl)))[kind]("name"))
				waiting := queueUp(t, rdb, "name", 3)
				if err := end(rdb, relay); err != nil {
					t.Fatal(err)
				}
				servedInOrder(t, held.Token(), waiting)
				relay.Heal()
				coretest.WantErr(t, held.Unlock(ctx), core.ErrNotHeld)
				coretest.AwaitTidy(t, rdb)
			})
		}
	}
}

// TestFlushedQueue: Redis forgets everything. One of the waiters finds the lock free, whichever asks first; the others
// line up as before. Tokens grow on.
func TestFlushedQueue(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	held := coretest.MustLock(t, coretest.NewClient(t, rdb).Fair("name"), core.WithTTL(coretest.Long))
	waiting := queueUp(t, rdb, "name", 6)
	if err := rdb.FlushAll(context.Background()).Err(); err != nil {
		t.Fatal(err)
	}
	var first *core.Lease
	testkit.Eventually(t, coretest.Within, "one of them to get the lock", func() bool {
		for i, next := range waiting {
			select {
			case first = <-next:
				waiting = slices.Delete(waiting, i, i+1)
				return true
			default:
			}
		}
		return false
	})
	if first.Token() <= held.Token() {
		t.Errorf("token %d came after %d", first.Token(), held.Token())
	}
	coretest.AwaitQueue(t, coretest.NewClient(t, rdb), "name", len(waiting))
	coretest.Unlock(t, first)
	servedInOrder(t, first.Token(), waiting)
	coretest.WantErr(t, held.Unlock(context.Background()), core.ErrNotHeld)
}

// TestLostMessages: what is not told is found out by asking, in the same order.
func TestLostMessages(t *testing.T) {
	t.Parallel()
	for _, right := range []string{"publish", "subscribe"} {
		for _, kind := range []string{"Mutex", "Fair", "Write", "Read"} {
			t.Run(kind+" without "+right, func(t *testing.T) {
				t.Parallel()
				server := testkit.Start(t)
				rdb := coretest.Restricted(t, server, "+@all", "-"+right)
				held := coretest.MustLock(t, coretest.Strategies(coretest.NewClient(t, rdb, core.WithTTL(coretest.Long)))[kind]("name"))
				waiting := queueUp(t, rdb, "name", 3)
				coretest.Unlock(t, held)
				servedInOrder(t, held.Token(), waiting)
				if stat := server.CommandStats()[right]; stat.Calls != 0 {
					t.Errorf("%s was allowed %d times", right, stat.Calls)
				}
			})
		}
	}
}

// TestOneWakeUpPerRelease: an unlock notifies the next in line, and no other.
func TestOneWakeUpPerRelease(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb := server.Client()
	heard := rdb.PSubscribe(ctx, "*lock:name*")
	defer heard.Close()
	if _, err := heard.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	held := coretest.MustLock(t, coretest.NewClient(t, rdb).Fair("name"), core.WithTTL(coretest.Long))
	waiting := queueUp(t, rdb, "name", 20)
	coretest.Unlock(t, held)
	var want []string
	for _, next := range waiting {
		lease := coretest.AwaitLease(t, next)
		want = append(want, fmt.Sprint(lease.Owner(), " ", lease.Token()))
		coretest.Unlock(t, lease)
	}
	want = append(want, "0") // to Redisson, and to clients that wait with a Mutex: it is free
	for _, text := range want {
		message, err := heard.ReceiveTimeout(ctx, coretest.Within)
		if m, ok := message.(*redis.Message); !ok || m.Payload != text {
			t.Fatalf("heard %v, %v, want %s", message, err, text)
		}
	}
	if said := server.CommandStats()["publish"].Calls; said != int64(len(want)) {
		t.Errorf("%d messages for %d handoffs", said, len(want))
	}
}
