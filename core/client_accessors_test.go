package core_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestClientTTL: TTL returns what WithTTL has set for the client, and 30 s without it.
func TestClientTTL(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	if got := newClient(t, rdb).TTL(); got != 30*time.Second {
		t.Errorf("TTL %v by default", got)
	}
	locks := newClient(t, rdb, core.WithTTL(long))
	_ = locks.Mutex("name", core.WithTTL(time.Minute)) // concerns this lock only
	if got := locks.TTL(); got != long {
		t.Errorf("TTL %v, want %v", got, long)
	}
}

// TestNamesAreKept: locks, leases and records return the name that they were made with, without the prefix.
func TestNamesAreKept(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client(), core.WithPrefix("app:"))
	for kind, strategy := range strategies(locks) {
		lock := strategy("{order}:42 " + kind)
		lease := mustLock(t, lock)
		if lock.Name() != "{order}:42 "+kind || lease.Name() != lock.Name() {
			t.Errorf("%s: lock %q, lease %q", kind, lock.Name(), lease.Name())
		}
		unlock(t, lease)
	}
	if key := locks.Once("{order}:42").Key(); key != "{order}:42" {
		t.Errorf("record %q", key)
	}
	if name := locks.Election("{order}:42").Name(); name != "{order}:42" {
		t.Errorf("election %q", name)
	}
}
