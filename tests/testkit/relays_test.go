package testkit_test

import (
	"errors"
	"io"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestRelaysOfSentinel: the way to the master goes through its relay, before and after a failover.
func TestRelaysOfSentinel(t *testing.T) {
	t.Parallel()
	s := testkit.StartSentinel(t)
	relays := s.Relays()
	rdb := s.RelayedClient(relays, func(o *redis.FailoverOptions) { o.MaxRetries, o.PoolSize = -1, 1 })
	set(t, rdb, "k")
	relays.Of(s.Servers[0]).LoseReplies("mykey", 1, testkit.Closed)
	if err := rdb.Incr(t.Context(), "mykey").Err(); !errors.Is(err, io.EOF) {
		t.Errorf("error is %v, want EOF", err)
	}
	wantInt(t, s.Servers[0].Client(), "mykey", 1)
	master := s.Failover()
	testkit.Eventually(t, patience, "the client to follow", func() bool {
		return rdb.Set(t.Context(), "after", "x", 0).Err() == nil && has(t, master, "after")
	})
	if relays.Of(master).Connections() != 1 {
		t.Error("the new connection does not pass the relay")
	}
}

// TestRelaysOfCluster lets one of three servers be out of reach.
func TestRelaysOfCluster(t *testing.T) {
	t.Parallel()
	c := testkit.StartCluster(t, 3)
	relays := c.Relays()
	rdb := c.RelayedClient(relays, func(o *redis.ClusterOptions) {
		o.MaxRedirects, o.ReadTimeout = -1, patience
	})
	far := c.Owner(c.Slot("a"))
	set(t, rdb, "a")
	relays.Of(far).Hold(testkit.ToServer)
	done := make(chan error, 1)
	go func() { done <- rdb.Set(t.Context(), "a", "y", 0).Err() }()
	testkit.Eventually(t, patience, "the request to be held", func() bool {
		return relays.Of(far).Held(testkit.ToServer) > 0
	})
	for _, key := range []string{"b", "c", "d", "e", "f"} {
		if c.Owner(c.Slot(key)) != far {
			set(t, rdb, key)
		}
	}
	relays.Heal()
	if err := <-done; err != nil {
		t.Errorf("the held request: %v", err)
	}
	if n := len(relays.All()); n != len(c.Servers()) {
		t.Errorf("%d relays for %d servers", n, len(c.Servers()))
	}
}
