package core_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestRedlockReleasesAnUncommittedHold: all servers vote for the lock, and answer nothing from the commit on. Each of the
// releases that follow is repeated until its server has confirmed it. The race detector sees whether they share state.
func TestRedlockReleasesAnUncommittedHold(t *testing.T) {
	t.Parallel()
	three := startMasters(t, 3)
	nodes, relays := make([]redis.UniversalClient, 3), make([]*testkit.Relay, 3)
	repeated := make(chan struct{}, 3)
	for i, s := range three.servers {
		relay := s.Relay()
		var held atomic.Bool
		var dials atomic.Int32
		nodes[i], relays[i] = relay.Client(func(o *redis.Options) {
			o.ReadTimeout = within
			o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				if held.Load() && dials.Add(1) == 2 { // the first release, without an answer, and its repetition
					repeated <- struct{}{}
				}
				return new(net.Dialer).DialContext(ctx, network, addr)
			}
		}), relay
		nth(relay, "lock:name", 2, func() { // the second request is the commit
			relay.Hold(testkit.ToClient)
			held.Store(true)
		})
	}
	r := newRedlock(t, nodes, core.WithNodeTimeout(time.Second), core.WithTTL(long))
	unlock(t, mustLock(t, r.Mutex("warm")))
	_, err := r.Mutex("name").TryLock(context.Background())
	wantErr(t, err, core.ErrUnavailable)
	for range relays {
		waitFor(t, repeated, "a release to be repeated")
	}
	for _, relay := range relays {
		relay.Heal()
	}
	three.awaitHolders(t, "lock:name", 0)
}
