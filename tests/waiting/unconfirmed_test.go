package waiting_test

import (
	"bytes"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

const confirmsNone = "confirms no subscription"

// TestUnconfirmedSubscription: a proxy passes on nothing from SUBSCRIBE on. The waiter gets its lock by polling, and the client
// warns of it once. It makes new connections meanwhile.
func TestUnconfirmedSubscription(t *testing.T) {
	t.Parallel()
	for name, strategy := range map[string]func(*core.Client) core.Strategy{
		"Mutex": func(c *core.Client) core.Strategy { return c.Mutex }, "Fair": func(c *core.Client) core.Strategy { return c.Fair },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testkit.Start(t)
			held := coretest.MustLock(t, coretest.NewClient(t, server.Client()).Mutex("name"), core.WithTTL(coretest.Long))
			relay := server.Relay()
			relay.LoseReplies("\r\nsubscribe\r\n", 1_000_000, testkit.Silent)
			log := &coretest.Record{}
			locks := coretest.NewClient(t, relay.Client(), core.WithLogger(coretest.TextLogger(log)))
			waiting := coretest.LockLater(strategy(locks)("name"))
			testkit.Eventually(t, coretest.Within, "a warning, and two more connections", func() bool {
				return strings.Contains(log.String(), confirmsNone) && relay.LostReplies() > 2
			})
			coretest.Unlock(t, held)
			if err := coretest.Receive(t, waiting); err != nil {
				t.Error(err)
			}
			if n := strings.Count(log.String(), confirmsNone); n != 1 {
				t.Errorf("%d warnings: %s", n, log)
			}
		})
	}
}

// swallowing is a proxy that passes on all but what contains SUBSCRIBE, as long as on is true.
func swallowing(t *testing.T, server *testkit.Server, on *atomic.Bool) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	var ends []net.Conn
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			redis, err := net.Dial(server.Network(), server.Addr())
			if err != nil {
				_ = client.Close()
				continue
			}
			mu.Lock()
			ends = append(ends, client, redis)
			mu.Unlock()
			all.Go(func() { _, _ = io.Copy(client, redis); _ = client.Close() })
			all.Go(func() {
				defer redis.Close()
				buf := make([]byte, 64<<10)
				for {
					n, err := client.Read(buf)
					if err != nil {
						return
					}
					if on.Load() && bytes.Contains(bytes.ToLower(buf[:n]), []byte("\r\nsubscribe\r\n")) {
						continue
					}
					_, _ = redis.Write(buf[:n])
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, end := range ends {
			_ = end.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return l.Addr().String()
}

// TestUnconfirmedConnectionIsReplaced: the connection of the subscription answers pings, and SUBSCRIBE has got lost. Another
// connection subscribes.
func TestUnconfirmedConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	held := coretest.MustLock(t, coretest.NewClient(t, server.Client()).Mutex("name"), core.WithTTL(coretest.Long))
	var on atomic.Bool
	on.Store(true)
	rdb := redis.NewClient(&redis.Options{Addr: swallowing(t, server, &on)})
	log := &coretest.Record{}
	locks := coretest.NewClient(t, rdb, core.WithLogger(coretest.TextLogger(log)))
	t.Cleanup(func() {
		_ = locks.Close()
		_ = rdb.Close()
	})
	waiting := coretest.LockLater(locks.Mutex("name"))
	testkit.Eventually(t, coretest.Within, "a warning", func() bool { return strings.Contains(log.String(), confirmsNone) })
	on.Store(false)
	testkit.Eventually(t, coretest.Within, "a subscription", func() bool { return server.CommandStats()["subscribe"].Calls > 0 })
	coretest.Unlock(t, held)
	if err := coretest.Receive(t, waiting); err != nil {
		t.Error(err)
	}
}

// TestOutageIsNoUnconfirmedSubscription: in an outage there is no subscription either. The client does not warn of that.
func TestOutageIsNoUnconfirmedSubscription(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	held := coretest.MustLock(t, coretest.NewClient(t, server.Client()).Mutex("name"), core.WithFixedTTL(coretest.Long))
	log := &coretest.Record{}
	locks := coretest.NewClient(t, server.Client(), core.WithLogger(coretest.TextLogger(log)))
	ctx := t.Context()
	waiting := make(chan error, 1)
	go func() { _, err := coretest.AskingAgain{Locker: locks.Mutex("name")}.Lock(ctx); waiting <- err }()
	coretest.AwaitListeners(t, locks, "name", 1)
	server.Pause()
	// An outage of two tries, with the pings and reconnections that belong to it.
	testkit.Eventually(t, coretest.Within, "the call to fail", func() bool {
		_, err := locks.Mutex("other").TryLock(ctx)
		return err != nil
	})
	server.Resume()
	coretest.AwaitListeners(t, locks, "name", 1)
	_ = held.Unlock(ctx)
	if err := coretest.Receive(t, waiting); err != nil {
		t.Error(err)
	}
	if strings.Contains(log.String(), confirmsNone) {
		t.Errorf("warned of an outage: %s", log)
	}
}
