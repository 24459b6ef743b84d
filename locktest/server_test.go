package locktest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/locktest"
	"github.com/redis/go-redis/v9"
)

// mustLock locks, and ends the test if that fails.
func mustLock(t *testing.T, l *core.Lock, opts ...core.LockOption) *core.Lease {
	t.Helper()
	lease, err := l.Lock(t.Context(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// refused checks that a lock is held.
func refused(t *testing.T, l *core.Lock) {
	t.Helper()
	if _, err := l.TryLock(t.Context()); !errors.Is(err, core.ErrNotAcquired) {
		t.Errorf("error %v, want ErrNotAcquired", err)
	}
}

// free checks that a lock can be had, and unlocks it.
func free(t *testing.T, l *core.Lock) {
	t.Helper()
	lease, err := l.TryLock(t.Context())
	if err != nil {
		t.Errorf("not free: %v", err)
		return
	}
	if err := lease.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Parallel()
	synctest.Test(t, test)
}

// TestRenewedForAnHour: a lease is renewed in virtual time.
func TestRenewedForAnHour(t *testing.T) {
	bubble(t, func(t *testing.T) {
		server := locktest.Start(t)
		lease := mustLock(t, server.NewClient().Mutex("report"))
		time.Sleep(time.Hour)
		if err := context.Cause(lease.Context()); err != nil {
			t.Error("lost:", err)
		}
		refused(t, server.NewClient().Mutex("report"))
		if err := lease.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		free(t, server.NewClient().Mutex("report"))
	})
}

// TestDisconnect: the locks of a client that is cut off stay until their TTL has passed, and its leases end before.
func TestDisconnect(t *testing.T) {
	bubble(t, func(t *testing.T) {
		server := locktest.Start(t)
		holder, other := server.NewClient(), server.NewClient()
		lease := mustLock(t, holder.Mutex("report"))
		server.Disconnect(holder)
		time.Sleep(29 * time.Second)
		refused(t, other.Mutex("report"))
		time.Sleep(2 * time.Second)
		if err := context.Cause(lease.Context()); !errors.Is(err, core.ErrLeaseLost) {
			t.Errorf("cause %v, want ErrLeaseLost", err)
		}
		free(t, other.Mutex("report"))

		server.Reconnect(holder)
		free(t, holder.Mutex("report"))
	})
}

// TestStop: a server that was stopped is unavailable, and has its data afterwards.
func TestStop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		server := locktest.Start(t)
		holder, other := server.NewClient(), server.NewClient()
		lease := mustLock(t, holder.Mutex("report"))
		server.Stop()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := other.Mutex("report").TryLock(ctx); !errors.Is(err, core.ErrUnavailable) {
			t.Errorf("error %v, want ErrUnavailable", err)
		}
		server.Start()
		refused(t, other.Mutex("report"))
		time.Sleep(time.Minute)
		if err := context.Cause(lease.Context()); err != nil {
			t.Error("lost:", err)
		}
	})
}

// TestPause: a server that is paused does not answer, and continues afterwards.
func TestPause(t *testing.T) {
	bubble(t, func(t *testing.T) {
		server := locktest.Start(t)
		holder, other := server.NewClient(), server.NewClient()
		lease := mustLock(t, holder.Mutex("report"))
		server.Pause()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := other.Mutex("other").Lock(ctx); !errors.Is(err, core.ErrUnavailable) {
			t.Errorf("error %v, want ErrUnavailable", err)
		}
		server.Resume()
		time.Sleep(time.Minute)
		if err := context.Cause(lease.Context()); err != nil {
			t.Error("lost:", err)
		}
		free(t, holder.Mutex("other"))
	})
}

// TestResume: commands that arrived while the server was paused run afterwards.
func TestResume(t *testing.T) {
	bubble(t, func(t *testing.T) {
		server := locktest.Start(t)
		if err := server.Redis().Ping(t.Context()).Err(); err != nil { // connects
			t.Fatal(err)
		}
		server.Pause()
		answered := make(chan error)
		go func() { answered <- server.Redis().Set(t.Context(), "key", "value", 0).Err() }()
		time.Sleep(time.Second)
		select {
		case err := <-answered:
			t.Fatal("answered during the pause:", err)
		default:
		}
		server.Resume()
		if err := <-answered; err != nil {
			t.Error(err)
		}
	})
}

// TestCrowdDuringPause: virtual time continues while many goroutines wait for a server that is silent.
func TestCrowdDuringPause(t *testing.T) {
	bubble(t, func(t *testing.T) {
		server := locktest.Start(t)
		server.Pause()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		locks := server.NewClient()
		refused := make(chan error)
		for i := range 20 {
			go func() {
				_, err := locks.Mutex(fmt.Sprint(i)).Lock(ctx)
				refused <- err
			}()
		}
		for range 20 {
			if err := <-refused; !errors.Is(err, core.ErrUnavailable) {
				t.Errorf("error %v, want ErrUnavailable", err)
			}
		}
	})
}

// TestStartAfterALongOutage: a client gets through at once, however often it has tried before.
func TestStartAfterALongOutage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		server := locktest.Start(t)
		server.Stop()
		for range 500 {
			if server.Redis().Ping(t.Context()).Err() == nil {
				t.Fatal("answered although the server was stopped")
			}
		}
		server.Start()
		if err := server.Redis().Ping(t.Context()).Err(); err != nil {
			t.Error(err)
		}
	})
}

// TestFlush: all locks are lost, and their holders notice at the next renewal.
func TestFlush(t *testing.T) {
	bubble(t, func(t *testing.T) {
		server := locktest.Start(t)
		locks := server.NewClient()
		lease := mustLock(t, locks.Mutex("report"))
		server.Flush()
		<-lease.Done()
		if err := context.Cause(lease.Context()); !errors.Is(err, core.ErrLeaseLost) {
			t.Errorf("cause %v, want ErrLeaseLost", err)
		}
		if next := mustLock(t, locks.Mutex("report")); next.Token() <= lease.Token() {
			t.Errorf("token %d after %d", next.Token(), lease.Token())
		}
	})
}

// TestWaiters: waiters of every strategy are served, also one after the other.
func TestWaiters(t *testing.T) {
	bubble(t, func(t *testing.T) {
		server := locktest.Start(t)
		one, two := server.NewClient(), server.NewClient()
		for name, strategies := range map[string][2]core.Strategy{
			"mutex": {one.Mutex, two.Mutex}, "fair": {one.Fair, two.Fair},
			"write": {one.Write, two.Write}, "read": {one.Read, two.FairWrite},
		} {
			lease := mustLock(t, strategies[0](name))
			served := make(chan error)
			go func() {
				served <- strategies[1](name).Do(t.Context(), func(context.Context) error { return nil })
			}()
			time.Sleep(10 * time.Second)
			if err := lease.Unlock(t.Context()); err != nil {
				t.Error(name, err)
			}
			if err := <-served; err != nil {
				t.Error(name, err)
			}
		}
	})
}

// TestRetention: a record keeps a second run from beginning for as long as its retention, and no longer.
func TestRetention(t *testing.T) {
	bubble(t, func(t *testing.T) {
		order := locktest.New(t).Once("order:42", core.WithRetention(time.Hour))
		runs := 0
		place := func(context.Context) ([]byte, error) { runs++; return nil, nil }
		for _, passed := range []time.Duration{0, 59 * time.Minute, 2 * time.Minute} {
			time.Sleep(passed)
			if _, err := order.Do(t.Context(), place); err != nil {
				t.Error(err)
			}
		}
		if runs != 2 {
			t.Errorf("%d runs, want 2", runs)
		}
	})
}

// TestRedlock: three servers make a Redlock, which continues without one of them.
func TestRedlock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var nodes []redis.UniversalClient
		var servers []*locktest.Server
		for range 3 {
			servers = append(servers, locktest.Start(t))
			nodes = append(nodes, servers[len(servers)-1].Redis())
		}
		locks, err := core.NewRedlock(nodes)
		if err != nil {
			t.Fatal(err)
		}
		defer locks.Close()
		servers[0].Stop()
		lease := mustLock(t, locks.Mutex("report"))
		time.Sleep(time.Minute)
		if err := context.Cause(lease.Context()); err != nil {
			t.Error("lost:", err)
		}
		servers[1].Stop()
		<-lease.Done()
		if err := context.Cause(lease.Context()); !errors.Is(err, core.ErrLeaseLost) {
			t.Errorf("cause %v, want ErrLeaseLost", err)
		}
	})
}
