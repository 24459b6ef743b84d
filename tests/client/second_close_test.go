package client_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestSecondCloseWaits: when any call of Close has returned, the client uses its connections no more: also those for messages, which it
// closes last. So the caller may close the Redis client.
func TestSecondCloseWaits(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	var silent atomic.Bool // the host does not reply
	var dials atomic.Int64 // to a silent host, in progress
	goOn := make(chan struct{})
	rdb := server.Client(func(o *redis.Options) {
		dial := o.Dialer
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			switch {
			case silent.Load():
				dials.Add(1)
				defer dials.Add(-1)
				<-goOn
				return nil, errors.New("timeout")
			case dial != nil:
				return dial(ctx, network, addr)
			}
			return net.Dial(network, addr)
		}
	})
	locks, err := core.New(rdb)
	coretest.WantErr(t, err, nil)
	lease := coretest.MustLock(t, coretest.NewClient(t, server.Client()).Mutex("name"))
	ctx, cancel := context.WithCancel(t.Context())
	waiting := coretest.LockUntil(ctx, locks.Mutex("name"))
	testkit.Eventually(t, coretest.Within, "the waiter subscribes", func() bool {
		return len(server.Client().PubSubChannels(t.Context(), "*name*").Val()) > 0
	})
	silent.Store(true)
	server.Client().ClientKillByFilter(t.Context(), "TYPE", "pubsub")
	testkit.Eventually(t, coretest.Within, "the client connects again", func() bool { return dials.Load() > 0 })
	cancel()
	_ = coretest.Receive(t, waiting)
	closed := make(chan int64, 2)
	for range 2 {
		go func() {
			_ = locks.Close()
			closed <- dials.Load()
		}()
	}
	time.AfterFunc(300*time.Millisecond, func() { close(goOn) }) // both have begun
	for range 2 {
		if n := <-closed; n != 0 {
			t.Errorf("Close has returned during %d dials", n)
		}
	}
	coretest.Unlock(t, lease)
}
