package coretest

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

// Locker is a [core.Lock], or one with another way to wait.
type Locker interface {
	Lock(ctx context.Context, opts ...core.LockOption) (*core.Lease, error)
}

func MustLock(t testing.TB, l Locker, opts ...core.LockOption) *core.Lease {
	t.Helper()
	return MustLockWith(t, context.Background(), l, opts...)
}

func MustLockWith(t testing.TB, ctx context.Context, l Locker, opts ...core.LockOption) *core.Lease {
	t.Helper()
	lease, err := l.Lock(ctx, opts...)
	if err != nil {
		t.Fatalf("lock: %v", err)
	}
	return lease
}

// Expand lets Redis write all fields of locks that are held, which have fewer as long as no other client asks for them.
func Expand(t testing.TB, locks *core.Client, names ...string) {
	t.Helper()
	for _, name := range names {
		_, err := locks.Write(name).TryLock(context.Background())
		WantErr(t, err, core.ErrNotAcquired)
	}
}

func Unlock(t testing.TB, lease *core.Lease) {
	t.Helper()
	if err := lease.Unlock(context.Background()); err != nil {
		t.Errorf("unlock: %v", err)
	}
}

// AwaitRenewed returns once all leases are trusted for longer than d from now, or one has ended.
func AwaitRenewed(t testing.TB, leases []*core.Lease, d time.Duration) {
	t.Helper()
	now := time.Now()
	testkit.Eventually(t, Within, "the leases to be renewed", func() bool {
		for _, l := range leases {
			if l.Context().Err() == nil && l.ValidUntil().Before(now.Add(d)) {
				return false
			}
		}
		return true
	})
}

// LockLater locks in another goroutine; the result arrives when it is granted.
func LockLater(l *core.Lock) <-chan error {
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

// AskingAgain is a lock whose Lock asks again after an outage longer than one call endures. A busy machine takes longer
// than that to replace a master.
type AskingAgain struct{ Locker }

func (l AskingAgain) Lock(ctx context.Context, opts ...core.LockOption) (*core.Lease, error) {
	for {
		lease, err := l.Locker.Lock(ctx, opts...)
		if !errors.Is(err, core.ErrUnavailable) {
			return lease, err
		}
	}
}

// LeaseLater locks in another goroutine; the lease arrives when it is granted.
func LeaseLater(t testing.TB, l Locker, opts ...core.LockOption) <-chan *core.Lease {
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

func AwaitLease(t testing.TB, done <-chan *core.Lease) *core.Lease {
	t.Helper()
	select {
	case lease := <-done:
		if lease == nil {
			t.FailNow()
		}
		return lease
	case <-time.After(Within):
		t.Fatalf("waited %v for the lock", Within)
		return nil
	}
}

func TryLock(l *core.Lock) error {
	lease, err := l.TryLock(context.Background())
	if err == nil {
		_ = lease.Unlock(context.Background())
	}
	return err
}

// AwaitQueue returns once that many wait in line.
func AwaitQueue(t testing.TB, locks *core.Client, name string, n int) {
	t.Helper()
	testkit.Eventually(t, Within, fmt.Sprint(n, " to be in line"), func() bool {
		info, err := locks.Inspect(context.Background(), name)
		return err == nil && len(info.Queue) == n
	})
}

// ExtendSoon prolongs a lease as soon as Redis lets it, and fails if the lease is over.
func ExtendSoon(t *testing.T, lease *core.Lease) {
	t.Helper()
	testkit.Eventually(t, Within, "the lease to be extended", func() bool {
		return lease.Extend(context.Background(), Long) == nil || lease.Context().Err() != nil
	})
	if err := context.Cause(lease.Context()); err != nil {
		t.Errorf("%s: %v", lease.Name(), err)
	}
}

// Losses counts what the hook Lost is told, by name.
type Losses struct {
	mu   sync.Mutex
	told map[string]int
}

func (l *Losses) Hooks() core.Option {
	l.told = make(map[string]int)
	return core.WithHooks(core.Hooks{Lost: func(_ context.Context, lost core.Lost) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.told[lost.Name]++
	}})
}

// WantOnce checks that each name was told of once, and no other. It waits for all: the members of a Multi within another
// one are told of by a goroutine of their own.
func (l *Losses) WantOnce(t testing.TB, names ...string) {
	t.Helper()
	want := make(map[string]int)
	for _, name := range names {
		want[name] = 1
	}
	testkit.Eventually(t, Within, "all losses to be told of", func() bool {
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

func MustInspect(t testing.TB, locks *core.Client, name string) core.Info {
	t.Helper()
	info, err := locks.Inspect(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// LockCommitted returns a lease whose token all servers have committed. A server that answers late on a busy machine need not
// get the token, so it locks again if one has not got it for a while.
func (m byMaster) LockCommitted(t *testing.T, lock *core.Lock) (lease *core.Lease) {
	t.Helper()
	polls := 0
	testkit.Eventually(t, 2*Within, "the token to be agreed on", func() bool {
		if lease == nil {
			lease, polls = MustLock(t, lock, core.WithFixedTTL(Long)), 0
		}
		for _, rdb := range m.Looks {
			if rdb.HGet(context.Background(), "lock:"+lock.Name(), "token_committed").Val() != "1" {
				if polls++; polls == 200 {
					Unlock(t, lease)
					lease = nil
				}
				return false
			}
		}
		return true
	})
	return lease
}

// MustHold takes permits of one semaphore until n leases have them.
func MustHold(t *testing.T, l *core.Lock, n int) []*core.Lease {
	t.Helper()
	var leases []*core.Lease
	for range n {
		leases = append(leases, MustLock(t, l))
	}
	return leases
}

// LockUntil locks in another goroutine until ctx ends; the result arrives then.
func LockUntil(ctx context.Context, l *core.Lock) <-chan error {
	done := make(chan error, 1)
	go func() {
		lease, err := l.Lock(ctx)
		if err == nil {
			err = lease.Unlock(context.Background())
		}
		done <- err
	}()
	return done
}

func LockMany(locks *core.Client, n int) (time.Duration, error) {
	began := time.Now()
	var all sync.WaitGroup
	failed := make(chan error, 64)
	for worker := range 64 {
		all.Go(func() {
			for i := worker; i < n; i += 64 {
				if _, err := locks.Mutex(fmt.Sprint("n", i)).Lock(context.Background()); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(failed)
	return time.Since(began), <-failed
}

// AwaitRenewal returns after the next renewal of a lease.
func AwaitRenewal(t testing.TB, lease *core.Lease) {
	t.Helper()
	before := lease.ValidUntil()
	testkit.Eventually(t, Within, "a renewal", func() bool {
		return lease.ValidUntil().Sub(before) > 100*time.Millisecond
	})
}
