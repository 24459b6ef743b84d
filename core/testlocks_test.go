package core_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

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

// expand lets Redis write all fields of locks that are held, which have fewer as long as no other client asks for them.
func expand(t testing.TB, locks *core.Client, names ...string) {
	t.Helper()
	for _, name := range names {
		_, err := locks.Write(name).TryLock(context.Background())
		wantErr(t, err, core.ErrNotAcquired)
	}
}

func unlock(t testing.TB, lease *core.Lease) {
	t.Helper()
	if err := lease.Unlock(context.Background()); err != nil {
		t.Errorf("unlock: %v", err)
	}
}

// awaitRenewed returns once all leases are trusted for longer than d from now, or one has ended.
func awaitRenewed(t testing.TB, leases []*core.Lease, d time.Duration) {
	t.Helper()
	now := time.Now()
	testkit.Eventually(t, within, "the leases to be renewed", func() bool {
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

// askingAgain is a lock whose Lock asks again after an outage longer than one call endures. A busy machine takes longer
// than that to replace a master.
type askingAgain struct{ core.Locker }

func (l askingAgain) Lock(ctx context.Context, opts ...core.LockOption) (*core.Lease, error) {
	for {
		lease, err := l.Locker.Lock(ctx, opts...)
		if !errors.Is(err, core.ErrUnavailable) {
			return lease, err
		}
	}
}

// leaseLater locks in another goroutine; the lease arrives when it is granted.
func leaseLater(t testing.TB, l core.Locker, opts ...core.LockOption) <-chan *core.Lease {
	done := make(chan *core.Lease, 1)
	go func() {
		defer close(done)
		lease, err := l.Lock(context.Background(), opts...)
		if err != nil {
			t.Errorf("lock: %v", err)
			return
		}
		done <- lease
	}()
	return done
}

func awaitLease(t testing.TB, done <-chan *core.Lease) *core.Lease {
	t.Helper()
	select {
	case lease := <-done:
		if lease == nil {
			t.FailNow()
		}
		return lease
	case <-time.After(within):
		t.Fatalf("waited %v for the lock", within)
		return nil
	}
}

func tryLock(l core.Locker) error {
	lease, err := l.TryLock(context.Background())
	if err == nil {
		_ = lease.Unlock(context.Background())
	}
	return err
}

// awaitQueue returns once that many wait in line.
func awaitQueue(t testing.TB, locks *core.Client, name string, n int) {
	t.Helper()
	testkit.Eventually(t, within, fmt.Sprint(n, " to be in line"), func() bool {
		info, err := locks.Inspect(context.Background(), name)
		return err == nil && len(info.Queue) == n
	})
}

// extendSoon prolongs a lease as soon as Redis lets it, and fails if the lease is over.
func extendSoon(t *testing.T, lease *core.Lease) {
	t.Helper()
	testkit.Eventually(t, within, "the lease to be extended", func() bool {
		return lease.Extend(context.Background(), long) == nil || lease.Context().Err() != nil
	})
	if err := context.Cause(lease.Context()); err != nil {
		t.Errorf("%s: %v", lease.Name(), err)
	}
}

// losses counts what the hook Lost is told, by name.
type losses struct {
	mu   sync.Mutex
	told map[string]int
}

func (l *losses) hooks() core.Option {
	l.told = make(map[string]int)
	return core.WithHooks(core.Hooks{Lost: func(_ context.Context, lost core.Lost) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.told[lost.Name]++
	}})
}

// wantOnce checks that each name was told of once, and no other. It waits for all: the members of a Multi within another
// one are told of by a goroutine of their own.
func (l *losses) wantOnce(t testing.TB, names ...string) {
	t.Helper()
	want := make(map[string]int)
	for _, name := range names {
		want[name] = 1
	}
	testkit.Eventually(t, within, "all losses to be told of", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.told) >= len(want)
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	if !maps.Equal(l.told, want) {
		t.Errorf("Lost was told of %v, want %v", l.told, want)
	}
}
