package outage_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestRepeatedRequestIsTakenBack: a request that is stuck on the way is sent again, and that one is refused. The first
// arrives when the lock is free, and the caller has gone: it must not be granted.
func TestRepeatedRequestIsTakenBack(t *testing.T) {
	t.Parallel()
	try := func(lock func(*core.Client) *core.Lock) func(*core.Client) (func(*testing.T), error) {
		return func(locks *core.Client) (func(*testing.T), error) {
			lease, err := lock(locks).TryLock(context.Background())
			return func(t *testing.T) { coretest.Unlock(t, lease) }, err
		}
	}
	for kind, take := range map[string]func(*core.Client) (end func(*testing.T), err error){
		"Mutex": try(func(locks *core.Client) *core.Lock { return locks.Mutex("name") }),
		"Fair":  try(func(locks *core.Client) *core.Lock { return locks.Fair("name") }),
		"Multi": try(func(locks *core.Client) *core.Lock {
			return core.Multi(locks.Mutex("name"), locks.Mutex("other"))
		}),
		"Once": func(locks *core.Client) (func(*testing.T), error) {
			attempt, err := locks.Once("name").Begin(context.Background())
			return func(t *testing.T) {
				if err := attempt.Release(context.Background()); err != nil {
					t.Error(err)
				}
			}, err
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			refusedWhileStuck(t, take)
		})
	}
}

func refusedWhileStuck(t *testing.T, take func(*core.Client) (end func(*testing.T), err error)) {
	server := testkit.Start(t)
	rdb, relay := server.Client(), server.Relay()
	locks := coretest.NewClient(t, relay.Client(), core.WithTTL(coretest.Long))
	end, err := take(locks) // warms the connection, and shows that the server is quick
	if err != nil {
		t.Fatal(err)
	}
	end(t)
	holder := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	if end, err = take(holder); err != nil {
		t.Fatal(err)
	}
	pass, passed := make(chan struct{}), make(chan struct{})
	goOn := sync.OnceFunc(func() { close(pass) })
	t.Cleanup(goOn) // the relay could not be closed otherwise
	coretest.Nth(relay, "lock:name", 1, func() { <-pass; close(passed) })
	awaitQuick(t, locks) // only the direct path repeats a request so soon
	if _, err := take(locks); err == nil {
		t.Fatal("granted to two")
	}
	if err := locks.Close(); err != nil { // waits for what is done in the background
		t.Error(err)
	}
	end(t)
	calls := server.CommandStats()["evalsha"].Calls
	goOn()
	coretest.WaitFor(t, passed, "the request to go on")
	testkit.Eventually(t, coretest.Within, "the request to be executed", func() bool {
		return server.CommandStats()["evalsha"].Calls > calls
	})
	if end, err = take(holder); err != nil {
		t.Errorf("granted to a caller who has gone: %v", err)
		return
	}
	end(t)
}

// TestFrozenServerWithoutTimeout: the connection waits for as long as it takes; the callers do not.
func TestFrozenServerWithoutTimeout(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	relay := server.Relay()
	locks := coretest.NewClient(t, relay.Client(func(o *redis.Options) { o.ReadTimeout = -1 }), core.WithTTL(coretest.Long))
	held := coretest.MustLock(t, locks.Mutex("held"))
	asked := make(chan struct{})
	coretest.Nth(relay, "lock:name", 1, func() { close(asked) })
	awaitQuick(t, locks)
	server.Pause()
	t.Cleanup(server.Resume) // before the client is closed, which waits for what is in the background
	ctx, cancel := context.WithCancel(context.Background())
	cancelled := make(chan error, 1)
	go func() {
		_, err := locks.Mutex("name").Lock(ctx)
		cancelled <- err
	}()
	coretest.WaitFor(t, asked, "the request")
	cancel()
	coretest.WantErr(t, coretest.Receive(t, cancelled), context.Canceled)
	unlocked := make(chan error, 1)
	go func() { unlocked <- held.Unlock(context.Background()) }()
	coretest.WantErr(t, coretest.Receive(t, unlocked), core.ErrUnavailable)
}

// awaitQuick locks and unlocks until the server has answered so quickly that the next command goes the direct path.
func awaitQuick(t *testing.T, locks *core.Client) {
	t.Helper()
	for range 1000 {
		began := time.Now()
		coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("quick")))
		if time.Since(began) < 2*time.Millisecond {
			return
		}
	}
	t.Fatal("the server is not quick")
}

// TestNoConnectionToBeHad: an Unlock does not wait for as long as go-redis dials, not even just after the server was
// quick.
func TestNoConnectionToBeHad(t *testing.T) {
	t.Parallel()
	cancellable, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	for name, ctx := range map[string]context.Context{"no end": context.Background(), "cancellable": cancellable} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testkit.Start(t)
			var down atomic.Bool
			up := make(chan struct{})
			locks := coretest.NewClient(t, server.Client(func(o *redis.Options) {
				dial := redis.NewDialer(o)
				o.DialTimeout = time.Hour
				o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
					if down.Load() {
						<-up
					}
					return dial(ctx, network, addr)
				}
			}), core.WithTTL(coretest.Long), core.WithLogger(nil))
			t.Cleanup(func() { close(up) }) // before the client is closed, which waits for what is in the background
			held := coretest.MustLock(t, locks.Mutex("held"))
			awaitQuick(t, locks)
			down.Store(true)
			if err := server.Client().ClientKillByFilter(t.Context(), "TYPE", "normal").Err(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- held.Unlock(ctx) }()
			coretest.WantErr(t, coretest.Receive(t, ended), core.ErrUnavailable)
		})
	}
}
