package core_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestCloseBesideFrozenRedis: Close gives up, also if a lease was lost before to a server that does not answer. The client of
// go-redis can be closed after it, although commands are still in flight.
func TestCloseBesideFrozenRedis(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	rdb := server.Client(func(o *redis.Options) { o.ReadTimeout = time.Minute })
	locks := newClient(t, rdb, core.WithTTL(500*time.Millisecond))
	lease := mustLock(t, locks.Mutex("lost"))
	mustLock(t, locks.Mutex("held"), core.WithTTL(long))
	server.Pause()
	defer server.Resume()
	waitFor(t, lease.Done(), "the loss")
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		if err := locks.Close(); err == nil {
			t.Error("Close says that all is released")
		}
		_ = rdb.Close()
	}()
	waitFor(t, closed, "Close")
}
