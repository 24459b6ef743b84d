package waiting_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

const waitingClientsOfName = "holdfast:waiting_clients:{lock:name}"

// TestCallersThatGaveUpAreNotCalled: a client without waiters is taken out of those to be woken, so that the
// next release wakes one that waits.
func TestCallersThatGaveUpAreNotCalled(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		opts []core.LockOption
		end  func(c *core.Client, cancel context.CancelFunc)
	}{
		"Cancelled": {end: func(_ *core.Client, cancel context.CancelFunc) { cancel() }},
		"TimeIsUp":  {opts: []core.LockOption{core.WithWait(300 * time.Millisecond)}, end: func(*core.Client, context.CancelFunc) {}},
		"Closed":    {end: func(c *core.Client, _ context.CancelFunc) { _ = c.Close() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testkit.Start(t)
			rdb := server.Client()
			holder := coretest.MustLock(t, coretest.NewClient(t, server.Client()).Mutex("name"), core.WithTTL(coretest.Long))
			gone := coretest.NewClient(t, server.Client())
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			left := make(chan error, 3)
			for range cap(left) { // the last one in the line of a process takes it out, which may not have asked itself
				go func() {
					_, err := gone.Mutex("name").Lock(ctx, test.opts...)
					left <- err
				}()
			}
			if test.opts == nil {
				awaitCallers(t, rdb, 1)
			}
			test.end(gone, cancel)
			for range cap(left) {
				if err := coretest.Receive(t, left); err == nil {
					t.Fatal("the lock was granted")
				}
			}
			awaitCallers(t, rdb, 0)
			waiting := coretest.LockLater(coretest.NewClient(t, server.Client()).Mutex("name"))
			awaitCallers(t, rdb, 1)
			staying := rdb.ZRange(context.Background(), waitingClientsOfName, 0, 0).Val()[0]
			next := coretest.Subscribe(t, rdb, "redisson_lock__channel:{lock:name}")
			coretest.Unlock(t, holder)
			if message := next(); message != staying {
				t.Errorf("%s is called, want %s", message, staying)
			}
			if err := coretest.Receive(t, waiting); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCallerGivesUpWhenCalled: the client was called, and its caller gives up before it has asked. The next one is called, also if
// another caller has taken the lock meanwhile, because the release of that lock does not call anybody.
func TestCallerGivesUpWhenCalled(t *testing.T) {
	t.Parallel()
	for name, taken := range map[string]bool{"Free": false, "Taken": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			server := testkit.Start(t)
			rdb := server.Client()
			holder := coretest.MustLock(t, coretest.NewClient(t, server.Client()).Mutex("name"), core.WithTTL(coretest.Long))
			left := make(chan error, 1)
			gone := coretest.NewClient(t, server.Client())
			go func() {
				_, err := gone.Mutex("name").Lock(ctx)
				left <- err
			}()
			awaitCallers(t, rdb, 1)
			// It is called, as far as Redis knows, and the message is lost; the lock is free, without a word. The next one is only
			// an entry, so that nothing else can call it.
			next := coretest.Subscribe(t, rdb, "redisson_lock__channel:{lock:name}")
			if _, err := rdb.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
				pipe.ZRemRangeByRank(ctx, waitingClientsOfName, 0, -1)
				pipe.ZAdd(ctx, waitingClientsOfName, redis.Z{Score: 1, Member: "2305843009213693953"})
				pipe.Del(ctx, "lock:name")
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if taken {
				coretest.MustLock(t, coretest.NewClient(t, server.Client()).Mutex("name"), core.WithTTL(coretest.Long))
			}
			cancel()
			coretest.WantErr(t, coretest.Receive(t, left), context.Canceled)
			if message := next(); message != "2305843009213693953" {
				t.Errorf("%q is said, not the number of the next client", message)
			}
			_ = holder.Unlock(context.Background())
		})
	}
}

// TestLockTakenBeforeTheOneCalled: the client that was called finds the lock taken by another caller, whose request did not
// look for waiting clients. The release of that lock calls it again, and does not leave it to its next poll.
func TestLockTakenBeforeTheOneCalled(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb := server.Client()
	rdb.ZAdd(ctx, waitingClientsOfName, redis.Z{Score: 1, Member: "2305843009213693953"}) // so the set is not empty
	holder := coretest.MustLock(t, coretest.NewClient(t, rdb).Mutex("name"), core.WithTTL(coretest.Long))
	waiting := coretest.LockLater(coretest.NewClient(t, server.Client()).Mutex("name"))
	awaitCallers(t, rdb, 2)
	next := coretest.Subscribe(t, rdb, "redisson_lock__channel:{lock:name}")
	coretest.Unlock(t, holder)
	if message := next(); message != "2305843009213693953" {
		t.Errorf("%q is said, not the number of the first client", message)
	}
	if err := coretest.Receive(t, waiting); err != nil {
		t.Error(err)
	}
}
