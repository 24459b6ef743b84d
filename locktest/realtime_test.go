package locktest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/locktest"
	"github.com/redis/go-redis/v9"
)

// TestAddr: clients over TCP and clients in memory share a server, which breaks for both.
func TestAddr(t *testing.T) {
	t.Parallel()
	server := locktest.Start(t)
	outer := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1})
	defer outer.Close()
	if err := outer.Set(t.Context(), "key", "value", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got, err := server.Redis().Get(t.Context(), "key").Result(); got != "value" {
		t.Errorf("%q, %v", got, err)
	}
	server.Stop()
	if err := outer.Get(t.Context(), "key").Err(); err == nil {
		t.Error("answered although the server was stopped")
	}
	server.Start()
	again := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer again.Close()
	if got, err := again.Get(t.Context(), "key").Result(); got != "value" {
		t.Errorf("%q after a restart, %v", got, err)
	}
}

// TestLongPipeline: a client may send more than a connection holds before it reads the replies.
func TestLongPipeline(t *testing.T) {
	t.Parallel()
	pipe := locktest.Start(t).Redis().Pipeline()
	for i := range 200 {
		pipe.Set(t.Context(), fmt.Sprint(i), strings.Repeat("x", 1000), 0)
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestAdvance: time passes for Redis alone: the lease expires there, and its holder learns of that at the next renewal.
func TestAdvance(t *testing.T) {
	t.Parallel()
	server := locktest.Start(t)
	lease := mustLock(t, server.NewClient().Mutex("report"))
	server.Advance(15 * time.Second)
	refused(t, server.NewClient().Mutex("report"))
	server.Advance(15 * time.Second)
	free(t, server.NewClient().Mutex("report"))
	if lease.Context().Err() != nil {
		t.Error("the holder knows already")
	}
	if err := lease.Extend(t.Context(), time.Minute); !errors.Is(err, core.ErrNotHeld) {
		t.Errorf("error %v, want ErrNotHeld", err)
	}
}

// TestForcedInABubble: the holder of a lock that was forced notices at the next renewal.
func TestForcedInABubble(t *testing.T) {
	bubble(t, func(t *testing.T) {
		server := locktest.Start(t)
		locks := server.NewClient()
		lease, began := mustLock(t, locks.Mutex("report")), time.Now()
		if forced, err := server.NewClient().ForceUnlock(t.Context(), "report"); !forced || err != nil {
			t.Fatal(forced, err)
		}
		<-lease.Done()
		if err := context.Cause(lease.Context()); !errors.Is(err, core.ErrLeaseLost) || time.Since(began) > 11*time.Second {
			t.Errorf("cause %v after %v", err, time.Since(began))
		}
	})
}

// A recorder is a TB that keeps what fails.
type recorder struct {
	cleanups []func()
	failure  string
}

func (r *recorder) Helper()                           {}
func (r *recorder) Cleanup(f func())                  { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Fatalf(format string, args ...any) { r.failure = fmt.Sprintf(format, args...) }

// failing runs what must fail, and returns with which message.
func failing(t *testing.T, misuse func(r *recorder)) string {
	t.Helper()
	r := &recorder{}
	func() {
		defer func() { _ = recover() }() // Fatalf of a recorder returns
		misuse(r)
	}()
	for _, cleanup := range r.cleanups {
		cleanup()
	}
	return r.failure
}

// TestMisuse: mistakes of a test fail it, with what is wrong.
func TestMisuse(t *testing.T) {
	bubble(t, func(t *testing.T) {
		foreign := locktest.New(t)
		for want, misuse := range map[string]func(r *recorder){
			"WithTTL":   func(r *recorder) { locktest.New(r, core.WithTTL(1)) },
			"NewClient": func(r *recorder) { locktest.Start(r).Disconnect(foreign) },
			"bubble":    func(r *recorder) { locktest.Start(r).Addr() },
		} {
			if got := failing(t, misuse); !strings.Contains(got, want) {
				t.Errorf("failed with %q, want %q in it", got, want)
			}
		}
	})
}

// TestClosedTwice: a server ends once, also if it is stopped and paused, and at once although a client cannot reach it.
func TestClosedTwice(t *testing.T) {
	bubble(t, func(t *testing.T) {
		server := locktest.NewServer()
		cut := server.NewClient()
		mustLock(t, cut.Mutex("a"))
		server.Disconnect(cut)
		server.Stop()
		server.Pause()
		began := time.Now()
		server.Close()
		server.Close()
		if took := time.Since(began); took > time.Second {
			t.Errorf("took %v", took)
		}
		if _, err := cut.Mutex("a").TryLock(t.Context()); !errors.Is(err, core.ErrClosed) {
			t.Errorf("error %v, want ErrClosed", err)
		}
	})
}

// TestNoReplicas: nothing acknowledges for a replica.
func TestNoReplicas(t *testing.T) {
	bubble(t, func(t *testing.T) {
		lock := locktest.New(t).Mutex("a", core.WithReplicaAck(1, time.Second))
		if _, err := lock.TryLock(t.Context()); !errors.Is(err, core.ErrNotReplicated) {
			t.Errorf("error %v, want ErrNotReplicated", err)
		}
	})
}
