package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// TestSemaphoreSlotsLost: if Redis loses the slots alone, others may get the permits. The holder is told by its next renewal.
func TestSemaphoreSlotsLost(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client()
	locks := newClient(t, rdb)
	permits := mustLock(t, locks.Semaphore("name", 4), core.WithPermits(3), core.WithTTL(3*time.Second))
	reader := mustLock(t, locks.Read("name"), core.WithTTL(long))
	if rdb.Del(t.Context(), "holdfast:slots:{lock:name}").Val() != 1 {
		t.Fatal("there are no slots")
	}
	waitFor(t, permits.Done(), "the holder to hear of it")
	wantErr(t, context.Cause(permits.Context()), core.ErrLeaseLost)
	if err := reader.Extend(t.Context(), long); err != nil {
		t.Errorf("a reader, which has no slot: %v", err)
	}
}

// TestSemaphoreExpiriesLost: entries of an owner whose shares Redis has lost do not let the owner in without a permit.
func TestSemaphoreExpiriesLost(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client()
	locks := newClient(t, rdb, core.WithTTL(long))
	two, owner := locks.Semaphore("name", 2), core.WithOwner("owner")
	writer := mustLock(t, locks.Write("name"), owner)
	mustLock(t, two, owner)
	if rdb.Del(t.Context(), "holdfast:share_expiries:{lock:name}").Val() != 1 {
		t.Fatal("there are no expiries")
	}
	again := mustLock(t, two, owner)
	unlock(t, writer)
	mustLock(t, two)
	unlock(t, again)
	mustLock(t, two)
	if lease, err := two.TryLock(t.Context(), owner); err == nil {
		t.Errorf("a third permit of two, in slot %d", lease.Slot())
	}
}
