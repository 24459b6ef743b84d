package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestExtendBeyondMaxHold: Redis keeps the lock for one TTL after its longest time at most.
func TestExtendBeyondMaxHold(t *testing.T) {
	for name := range strategies(nil) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			rdb := testkit.Start(t).Client()
			lock := strategies(newClient(t, rdb))[name]("name", core.WithTTL(10*time.Second), core.WithMaxHold(30*time.Second))
			lease := mustLock(t, lock)
			if err := lease.Extend(ctx, time.Hour); err != nil {
				t.Fatal(err)
			}
			if left := rdb.PTTL(ctx, "lock:name").Val(); left > 40*time.Second || left < 10*time.Second {
				t.Errorf("kept for %v", left)
			}
			unlock(t, lease)
		})
	}
}
