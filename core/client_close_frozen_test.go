package core_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// TestCloseBesideFrozenRedis: Close gives up, also if a lease was lost before to a server that does not answer.
func TestCloseBesideFrozenRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	locks := newClient(t, server.Client(), core.WithTTL(500*time.Millisecond))
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
	}()
	waitFor(t, closed, "Close")
}
