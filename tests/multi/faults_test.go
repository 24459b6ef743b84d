package multi_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestMultiOppositeOrders lets many goroutines of several clients lock the same names in all orders and in both ways,
// and single ones between them. No call may wait forever, each name has one holder at a time, and its tokens grow.
func TestMultiOppositeOrders(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	names := []string{"a", "b", "c", "d"}
	var inside [4]atomic.Int32
	var last [4]int64 // guarded by the locks under test
	visit := func(lock *core.Lock, which []int) error {
		ctx, cancel := context.WithTimeout(context.Background(), 2*coretest.Within)
		defer cancel()
		return lock.Do(ctx, func(ctx context.Context) error {
			token, _ := core.TokenFrom(ctx)
			for _, i := range which {
				if n := inside[i].Add(1); n != 1 {
					t.Errorf("%d holders of %s", n, names[i])
				}
				if token <= last[i] {
					t.Errorf("%s: token %d after %d", names[i], token, last[i])
				}
				last[i] = token
			}
			for _, i := range which {
				inside[i].Add(-1)
			}
			return nil
		})
	}
	var all sync.WaitGroup
	for p := range 3 {
		locks := coretest.NewClient(t, server.Client())
		for g := range 5 {
			rng := rand.New(rand.NewPCG(uint64(p), uint64(g)))
			all.Go(func() {
				for range 40 {
					which := rng.Perm(4)[:1+rng.IntN(3)]
					var chosen []string
					for _, i := range which {
						chosen = append(chosen, names[i])
					}
					lock := []*core.Lock{coretest.Mutexes(locks, chosen...), coretest.MutexesAndWrite(locks, chosen...)}[rng.IntN(2)]
					if len(which) == 1 {
						lock = locks.Mutex(chosen[0])
					}
					if err := visit(lock, which); err != nil {
						t.Errorf("%v: %v", chosen, err)
						return
					}
				}
			})
		}
	}
	all.Wait()
}

// TestMultiLostReply: a request is sent again after a lost reply, and grants once.
func TestMultiLostReply(t *testing.T) {
	eachWay(t, func(t *testing.T, server *testkit.Server, multi func(*core.Client, ...string) *core.Lock) {
		ctx := context.Background()
		relay := server.Relay()
		rdb := server.Client()
		locks := coretest.NewClient(t, relay.Client(), core.WithTTL(coretest.Long))
		coretest.Unlock(t, coretest.MustLock(t, multi(locks, "a", "b"))) // scripts are loaded
		relay.LoseReplies("lock:a", 1, testkit.Closed)
		lease := coretest.MustLock(t, multi(locks, "a", "b"))
		if relay.LostReplies() != 1 {
			t.Error("no reply was lost")
		}
		for _, name := range []string{"a", "b"} {
			info, err := locks.Inspect(ctx, name)
			if err != nil || len(info.Holders) != 1 || info.Holders[0].Holds != 1 || info.Holders[0].Token != lease.Token() {
				t.Errorf("%s: %+v, %v", name, info, err)
			}
		}
		relay.LoseReplies("lock:a", 1, testkit.Closed)
		coretest.Unlock(t, lease)
		coretest.WantFree(t, rdb, "a", "b")

		// One of them goes to another owner before the repetition: nothing of the first run may stay.
		relay.LoseReplies("lock:b", 1, testkit.Closed)
		var other *core.Lease
		coretest.BeforeRepetition(relay, "lock:b", func() {
			rdb.Del(ctx, "lock:b")
			other, _ = coretest.NewClient(t, rdb).Mutex("b").TryLock(ctx, core.WithTTL(coretest.Long))
		})
		lease, err := multi(locks, "a", "b").TryLock(ctx)
		relay.OnRequest(nil)
		if other == nil {
			t.Fatal("nobody took the lock between the two runs")
		}
		coretest.WantErr(t, err, core.ErrNotAcquired)
		if lease != nil {
			t.Error("locked what another holds")
		}
		coretest.Gone(t, rdb, "lock:a")
		coretest.Unlock(t, other)
	})
}

// TestMultiCancelledAnywhere cancels at random moments; whatever was under way, nothing stays locked.
func TestMultiCancelledAnywhere(t *testing.T) {
	eachWay(t, func(t *testing.T, server *testkit.Server, multi func(*core.Client, ...string) *core.Lock) {
		rdb := server.Client()
		locks := []*core.Client{coretest.NewClient(t, server.Relay().Client(), core.WithTTL(coretest.Long)), coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))}
		var granted atomic.Int32
		var all sync.WaitGroup
		for g := range 8 {
			all.Go(func() {
				names := []string{"a", "b", "c"}
				for i := range 40 {
					rand.Shuffle(3, func(i, j int) { names[i], names[j] = names[j], names[i] })
					ctx, cancel := context.WithCancel(context.Background())
					timer := time.AfterFunc(rand.N(4*time.Millisecond), cancel)
					lock := multi(locks[g%2], names...).Lock
					if i%4 == 0 {
						lock = multi(locks[g%2], names...).TryLock
					}
					if lease, err := lock(ctx); err == nil {
						granted.Add(1)
						_ = lease.Unlock(ctx)
					} else if !errors.Is(err, core.ErrNotAcquired) {
						t.Errorf("cancelled: %v", err)
					}
					timer.Stop()
					cancel()
				}
			})
		}
		all.Wait()
		t.Logf("%d of 320 were granted", granted.Load())
		for _, name := range []string{"a", "b", "c"} {
			coretest.Gone(t, rdb, "lock:"+name)
		}
	})
}

// TestMultiFrozenServer: the end of the context, or of the wait, is heeded although Redis does not reply, and what
// was locked by then is released afterwards.
func TestMultiFrozenServer(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server, frozen := testkit.Start(t), testkit.Start(t)
	a, z := coretest.NewClient(t, server.Client(), core.WithTTL(coretest.Long)), coretest.NewClient(t, frozen.Client(), core.WithTTL(coretest.Long))
	for _, members := range [][]*core.Lock{
		{a.Mutex("a"), z.Mutex("z")}, {z.Mutex("x"), z.Mutex("y")}, {z.Mutex("a"), a.Mutex("z")},
	} {
		lock := core.Multi(members...)
		coretest.Unlock(t, coretest.MustLock(t, lock))
		frozen.Pause()
		ended, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
		_, err := lock.Lock(ended)
		coretest.WantErr(t, err, core.ErrNotAcquired)
		coretest.WantErr(t, err, core.ErrUnavailable)
		coretest.WantErr(t, err, context.DeadlineExceeded)
		cancel()
		_, err = lock.Lock(ctx, core.WithWait(500*time.Millisecond))
		coretest.WantErr(t, err, core.ErrNotAcquired)
		coretest.WantErr(t, err, core.ErrUnavailable)
		if errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the end of the wait is told as that of a context: %v", err)
		}
		frozen.Resume()
		coretest.Unlock(t, coretest.MustLock(t, lock, core.WithWait(coretest.Within))) // nothing stays behind
	}
}

// TestMultiPanickingHooks: a hook that panics gets no caller a lock, and keeps none. Hooks see the end of each call that has
// started, so that calls can be counted.
func TestMultiPanickingHooks(t *testing.T) {
	eachWay(t, func(t *testing.T, server *testkit.Server, multi func(*core.Client, ...string) *core.Lock) {
		rdb := server.Client()
		for _, step := range []string{"start", "end", "release start", "release end"} {
			var calls atomic.Int32
			panicAt := func(at, name string) {
				if at == step && name == "b" {
					panic(step)
				}
			}
			locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithHooks(core.Hooks{
				AcquireStart: func(ctx context.Context, s core.AcquireStart) context.Context {
					panicAt("start", s.Name)
					calls.Add(1)
					return ctx
				},
				AcquireEnd: func(_ context.Context, e core.AcquireEnd) {
					calls.Add(-1)
					panicAt("end", e.Name)
				},
				ReleaseStart: func(ctx context.Context, s core.ReleaseStart) context.Context {
					panicAt("release start", s.Name)
					return ctx
				},
				ReleaseEnd: func(_ context.Context, e core.ReleaseEnd) { panicAt("release end", e.Name) },
			}))
			func() {
				defer func() {
					if got := fmt.Sprint(recover()); !strings.HasPrefix(got, step) {
						t.Errorf("recovered %v, want %s", got, step)
					}
				}()
				lease := coretest.MustLock(t, multi(locks, "a", "b", "c"))
				coretest.Unlock(t, lease)
			}()
			if n := calls.Load(); n != 0 {
				t.Errorf("%s: %d calls have no end", step, n)
			}
			if step == "release start" { // as with a single lock, whose release was not sent
				rdb.Del(context.Background(), "lock:b")
			}
			for _, name := range []string{"a", "b", "c"} {
				coretest.Gone(t, rdb, "lock:"+name)
			}
		}
	})
}

// TestMultiWrongType: the error names the key that is to blame, and the others are left alone.
func TestMultiWrongType(t *testing.T) {
	eachWay(t, func(t *testing.T, server *testkit.Server, multi func(*core.Client, ...string) *core.Lock) {
		ctx := context.Background()
		rdb := server.Client()
		rdb.Set(ctx, "lock:b", "text", 0)
		_, err := multi(coretest.NewClient(t, rdb, core.WithTTL(coretest.Long)), "a", "b").TryLock(ctx)
		coretest.WantErr(t, err, core.ErrWrongType)
		if err == nil || !strings.Contains(err.Error(), `"lock:b"`) {
			t.Errorf("error %v does not name the key", err)
		}
		coretest.Gone(t, rdb, "lock:a")
	})
}

// TestMultiHalfway takes one command after another from the user: no member may stay locked.
func TestMultiHalfway(t *testing.T) {
	eachWay(t, func(t *testing.T, server *testkit.Server, multi func(*core.Client, ...string) *core.Lock) {
		ctx := context.Background()
		rdb := server.Client()
		for _, command := range []string{"time", "exists", "get", "set", "hset", "pexpire"} {
			t.Run(command, func(t *testing.T) {
				locks := coretest.NewClient(t, coretest.Restricted(t, server, "+@all", "-"+command), core.WithTTL(coretest.Long))
				names := []string{"a without " + command, "b without " + command}
				if lease, err := multi(locks, names...).TryLock(ctx); err == nil {
					_ = lease.Unlock(ctx) // the way in turn needs no GET if all tokens are the same
				}
				for _, name := range names {
					coretest.Gone(t, rdb, "lock:"+name)
				}
			})
		}
	})
}

// TestMultiTokenOutlivesAClockStep: a member whose last token lies ahead of the server's clock, which was set back,
// raises the tokens of the others for good.
func TestMultiTokenOutlivesAClockStep(t *testing.T) {
	eachWay(t, func(t *testing.T, server *testkit.Server, multi func(*core.Client, ...string) *core.Lock) {
		ctx := context.Background()
		rdb := server.Client()
		locks := coretest.NewClient(t, rdb)
		last := time.Now().Add(time.Hour).UnixMicro()
		rdb.Set(ctx, "holdfast:token", last, time.Hour)
		for range 2 {
			for _, lock := range []*core.Lock{multi(locks, "a", "b"), locks.Mutex("a"), locks.Mutex("b")} {
				lease := coretest.MustLock(t, lock)
				if lock.Name() == "b" && lease.Token() < last || lock.Name() != "b" && lease.Token() <= last {
					t.Errorf("%s: token %d after %d", lock.Name(), lease.Token(), last)
				}
				last = max(last, lease.Token())
				coretest.Unlock(t, lease)
			}
		}
		for _, name := range []string{"a", "b"} {
			if ttl := rdb.PTTL(ctx, "holdfast:token").Val(); ttl < time.Hour {
				t.Errorf("%s: the token is remembered for %v", name, ttl)
			}
		}
	})
}

// TestMultiKeepsAdoptedLease: a lock that Redisson holds for the owner keeps its entries and its lease.
func TestMultiKeepsAdoptedLease(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb)
	java := "8b0f7e2d-0000-4000-8000-000000000001:42"
	rdb.HSet(ctx, "lock:a", java, 2)
	rdb.PExpire(ctx, "lock:a", 10*time.Minute)
	ahead := time.Now().Add(time.Hour).UnixMicro() // as a clock that was set back has left it
	rdb.Set(ctx, "holdfast:token", ahead, time.Hour)
	if _, err := coretest.Mutexes(locks, "a", "b").TryLock(ctx); err == nil {
		t.Error("entered a lock that Redisson holds")
	}
	lease := coretest.MustLock(t, coretest.Mutexes(locks, "a", "b"), core.WithOwner(java), core.WithTTL(time.Second), core.WithMinHold(coretest.Long))
	if lease.Token() <= ahead || lease.Owner() != java {
		t.Errorf("owner %q with token %d after %d", lease.Owner(), lease.Token(), ahead)
	}
	for _, name := range []string{"a", "b"} {
		if token := rdb.HGet(ctx, "lock:"+name, "token").Val(); token != fmt.Sprint(lease.Token()) {
			t.Errorf("%s has the token %s, want %d", name, token, lease.Token())
		}
	}
	coretest.Unlock(t, lease)
	if count, left := rdb.HGet(ctx, "lock:a", java).Val(), coretest.LeftFor(t, rdb, "a"); count != "2" || left < 9*time.Minute {
		t.Errorf("Redisson's lock has count %s and %v left", count, left)
	}
	if left := coretest.LeftFor(t, rdb, "b"); left < coretest.Long-coretest.Within || left > coretest.Long {
		t.Errorf("%v left after unlock, want %v from the grant", left, coretest.Long)
	}
}
