package core_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

const (
	// within is how long anything may take on a busy machine.
	within = 20 * time.Second
	// long is a TTL that outlasts every test.
	long = 2 * time.Minute
)

// newClient returns a lock client that is closed with the test.
func newClient(t testing.TB, rdb redis.UniversalClient, opts ...core.Option) *core.Client {
	t.Helper()
	locks, err := core.New(rdb, opts...)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	return locks
}

func mustLock(t testing.TB, l core.Locker, opts ...core.LockOption) *core.Lease {
	t.Helper()
	return mustLockWith(t, context.Background(), l, opts...)
}

func mustLockWith(t testing.TB, ctx context.Context, l core.Locker, opts ...core.LockOption) *core.Lease {
	t.Helper()
	lease, err := l.Lock(ctx, opts...)
	if err != nil {
		t.Fatalf("lock: %v", err)
	}
	return lease
}

func unlock(t testing.TB, lease *core.Lease) {
	t.Helper()
	if err := lease.Unlock(context.Background()); err != nil {
		t.Errorf("unlock: %v", err)
	}
}

func wantErr(t testing.TB, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("error %v is not %v", err, target)
	}
}

func waitFor(t testing.TB, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(within):
		t.Fatalf("waited %v for %s", within, what)
	}
}

// awaitRenewed returns once all leases are trusted for longer than d from now, or one has ended.
func awaitRenewed(t testing.TB, leases []*core.Lease, d time.Duration) {
	t.Helper()
	now := time.Now()
	redistest.Eventually(t, within, "the leases to be renewed", func() bool {
		for _, l := range leases {
			if l.Context().Err() == nil && l.ValidUntil().Before(now.Add(d)) {
				return false
			}
		}
		return true
	})
}

// lockLater locks in another goroutine; the result arrives when it is granted.
func lockLater(l core.Locker) <-chan error {
	done := make(chan error, 1)
	go func() {
		lease, err := l.Lock(context.Background())
		if err == nil {
			err = lease.Unlock(context.Background())
		}
		done <- err
	}()
	return done
}

func receive(t testing.TB, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(within):
		t.Fatalf("waited %v for Lock to return", within)
		return nil
	}
}
