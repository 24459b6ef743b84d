package core_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// listAll walks over all pages of locks, and fails for an error.
func listAll(t testing.TB, locks *core.Client, prefix string) map[string]core.Entry {
	t.Helper()
	found := make(map[string]core.Entry)
	for e, err := range locks.Locks(context.Background(), prefix) {
		if err != nil {
			t.Fatalf("Locks: %v", err)
		}
		found[e.Name] = e
	}
	return found
}

// TestListOfEveryStrategy: each kind of lock is listed with its holder, first in its compact state, and then with a waiter.
func TestListOfEveryStrategy(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	locks, other := newClient(t, server.Client()), newClient(t, server.Client())
	modes := map[string]core.Mode{
		"Mutex": core.ModeMutex, "Fair": core.ModeFair, "Read": core.ModeRead, "Write": core.ModeWrite,
		"FairRead": core.ModeRead, "FairWrite": core.ModeWrite, "Semaphore": core.ModeSemaphore,
	}
	leases := make(map[string]*core.Lease)
	for name, strategy := range strategies(locks) {
		leases[name] = mustLock(t, strategy(name), core.WithTTL(long))
	}
	check := func(places int) {
		t.Helper()
		found := listAll(t, other, "")
		if got, want := slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(modes)); !slices.Equal(got, want) {
			t.Fatalf("listed %q, want %q", got, want)
		}
		for name, lease := range leases {
			e := found[name]
			if e.Kind != core.KindLock || e.Mode != modes[name] || e.Foreign || e.Holds != 1 || e.Places != places || len(e.Holders) != 1 {
				t.Errorf("%s: %+v", name, e)
				continue
			}
			h := e.Holders[0]
			if h.Owner != lease.Owner() || h.Token != lease.Token() || h.TTL <= 0 || h.TTL > long || e.TTL < h.TTL ||
				h.Granted.Sub(grantedAt(lease)).Abs() > 10*time.Millisecond {
				t.Errorf("%s: %+v, of %s with token %d", name, h, lease.Owner(), lease.Token())
			}
		}
	}
	check(0)
	for name := range leases {
		_ = lockLater(other.Write(name)) // until the client is closed
		awaitQueue(t, locks, name, 1)
	}
	check(1)
}
