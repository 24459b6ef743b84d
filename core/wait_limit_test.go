package core_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestHundredThousandWaiters lets 100,000 goroutines ask for one name: as many as may wait, and get it in the order in
// which they came; all others get an error at once and leave nothing behind, neither here nor in Redis. It is no parallel
// test, because it counts goroutines and memory.
func TestHundredThousandWaiters(t *testing.T) {
	const most = 200
	callers := 100_000
	if coretest.UnderRace {
		callers = 20_000
	}
	flood(t, callers, func() error { return nil }) // the runtime keeps the records of ended goroutines
	for _, kind := range []string{"Mutex", "Fair"} {
		t.Run(kind, func(t *testing.T) {
			server := testkit.Start(t)
			rdb := server.Client()
			begun := make(chan core.Wait, 1)
			locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithMaxWaiters(most), core.WithHooks(core.Hooks{
				Wait: func(_ context.Context, w core.Wait) {
					select {
					case begun <- w:
					default: // the line is complete: this call has the place of a waiter that has failed, which the test reports
					}
				},
			}))
			lock := coretest.Strategies(locks)[kind]("name")
			holder := coretest.MustLock(t, lock)
			before := footprint()
			ctx, giveUp := context.WithCancel(t.Context()) // if a waiter fails, or a caller that has its place would wait for ever
			defer giveUp()
			served := waitInLine(t, lock, most, begun, giveUp)
			refused := wantTooMany(t, ctx, server, lock, callers-most)
			if n := waiting(rdb, locks, kind); n != most || refused != callers-most {
				t.Errorf("%d refused, %d in line", refused, n)
			}
			coretest.Unlock(t, holder)
			want := 0
			for got := range served {
				if got != want {
					t.Fatalf("waiter %d was served in place %d", got, want)
				}
				want++
			}
			if want != most {
				t.Errorf("%d were served", want)
			}
			before.wantBack(t)
		})
	}
}

// waitInLine lets n callers wait for a lock, each behind the one before it. It returns a channel of their numbers in the
// order in which they get the lock, which is closed when all have released it. It calls failed if a waiter gets an error.
func waitInLine(t *testing.T, lock *core.Lock, n int, begun <-chan core.Wait, failed func()) <-chan int {
	t.Helper()
	served := make(chan int, n)
	var waiters sync.WaitGroup
	for i := range n {
		waiters.Go(func() {
			err := lock.Do(context.Background(), func(context.Context) error {
				served <- i
				return nil
			})
			if err != nil {
				t.Errorf("waiter %d: %v", i, err)
				failed()
			}
		})
		<-begun // in line
	}
	go func() {
		waiters.Wait()
		close(served)
	}()
	return served
}

// wantTooMany lets so many callers ask for a lock at once, and checks that each gets ErrTooManyWaiters, and that
// hardly any of them asks Redis. It returns how many got it.
func wantTooMany(t *testing.T, ctx context.Context, server *testkit.Server, lock *core.Lock, callers int) int {
	t.Helper()
	asked, began := server.CommandStats()["evalsha"].Calls, time.Now()
	refused := flood(t, callers, func() error {
		_, err := lock.Lock(ctx)
		if !errors.Is(err, core.ErrNotAcquired) || errors.Is(err, core.ErrUnavailable) {
			t.Errorf("refused with %v", err)
		}
		return err
	})
	took := time.Since(began)
	asked = server.CommandStats()["evalsha"].Calls - asked
	if asked > int64(callers)/10 { // heartbeats of those in line, and on a busy machine their places anew
		t.Errorf("Redis was asked %d times", asked)
	}
	t.Logf("%d refused in %v, in which Redis was asked %d times", refused, took, asked)
	return refused
}

// waiting counts the waiters: for a Mutex in the process, of which only the first asks Redis, for the others in Redis.
func waiting(rdb *redis.Client, locks *core.Client, kind string) int {
	if kind == "Mutex" {
		return core.WaitingCalls(locks, "lock:name")
	}
	return int(rdb.ZCard(context.Background(), "holdfast:exclusive_queue:{lock:name}").Val())
}

// flood calls from so many goroutines, and counts those that were refused because there are too many. All goroutines exist before the
// first one calls, but only some are runnable at a time. Otherwise the goroutines that read the answers of Redis would stand in
// one line with all of them, on a slow machine for longer than a waiter endures an outage.
func flood(t *testing.T, callers int, call func() error) int {
	t.Helper()
	var all sync.WaitGroup
	var refused atomic.Int64
	gate, running := make(chan struct{}), make(chan struct{}, 500)
	for range callers {
		all.Go(func() {
			<-gate
			defer func() { <-running }()
			if errors.Is(call(), core.ErrTooManyWaiters) {
				refused.Add(1)
			}
		})
	}
	for range callers {
		running <- struct{}{}
		gate <- struct{}{}
	}
	all.Wait()
	return int(refused.Load())
}

// releaseReason is what a process needs.
type releaseReason struct {
	goroutines int
	heap       uint64
}

func footprint() releaseReason {
	runtime.GC()
	runtime.GC() // pools are emptied by the second
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return releaseReason{runtime.NumGoroutine(), stats.HeapAlloc}
}

// wantBack checks that no more is needed than before, but for the pools of connections.
func (u releaseReason) wantBack(t *testing.T) {
	t.Helper()
	var now releaseReason
	testkit.Eventually(t, coretest.Within, "goroutines and memory to come back", func() bool {
		now = footprint()
		return now.goroutines <= u.goroutines+20 && now.heap < u.heap+4<<20
	})
	t.Logf("%d goroutines and %d KiB more than before", now.goroutines-u.goroutines, (int64(now.heap)-int64(u.heap))/1024)
}

// TestTooManyWaitForOnce: those within the bound get the value, the others get ErrInProgress.
func TestTooManyWaitForOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	const callers, most = 2000, 20
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long), core.WithMaxWaiters(most))
	once := locks.Once("name", core.WithWait(coretest.Within))
	a := coretest.MustBegin(t, once)
	var replayed atomic.Int64
	all := make(chan int)
	go func() {
		all <- flood(t, callers, func() error {
			got, err := once.Do(ctx, coretest.Answers(nil, ""))
			if err == nil && got.Replayed && string(got.Value) == "value" {
				replayed.Add(1)
			} else if !errors.Is(err, core.ErrInProgress) || errors.Is(err, core.ErrUnavailable) {
				t.Errorf("%+v, %v", got, err)
			}
			return err
		})
	}()
	testkit.Eventually(t, coretest.Within, "as many to wait as may", func() bool {
		return core.WaitingCalls(locks, core.OnceKey(locks, "name")) == most
	})
	// A caller that does not wait gets the usual answer, and other keys have room of their own.
	_, err := locks.Once("name").Begin(ctx)
	if coretest.WantErr(t, err, core.ErrInProgress); errors.Is(err, core.ErrTooManyWaiters) {
		t.Errorf("error %v", err)
	}
	coretest.MustBegin(t, locks.Once("other", core.WithWait(coretest.Within)))
	time.Sleep(50 * time.Millisecond) // or more of them would find room later, which is as well
	if err := a.Complete(ctx, []byte("value")); err != nil {
		t.Fatal(err)
	}
	if refused := <-all; refused+int(replayed.Load()) != callers || replayed.Load() < most {
		t.Errorf("%d refused, %d replayed", refused, replayed.Load())
	}
}

// TestManyMayWait: by default, 10,000 for one name, and as many as that for each of others.
func TestManyMayWait(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	if got := core.MaxWaiters(locks); got != 10_000 {
		t.Errorf("%d may wait", got)
	}
	rdb := testkit.Start(t).Client()
	for _, most := range []int{0, -1} {
		_, err := core.New(rdb, core.WithMaxWaiters(most))
		coretest.WantInvalid(t, err, core.ErrInvalidOption, fmt.Sprintf("WithMaxWaiters(%d)", most))
		_, err = core.NewRedlock([]redis.UniversalClient{rdb, server(t), server(t)}, core.WithMaxWaiters(most))
		coretest.WantInvalid(t, err, core.ErrInvalidOption, "WithMaxWaiters")
	}
	var full *core.NotAcquiredError
	locks = coretest.NewClient(t, rdb, core.WithMaxWaiters(1))
	holder := coretest.MustLock(t, coretest.NewClient(t, rdb).Mutex("name"), core.WithTTL(coretest.Long))
	waits := coretest.LockLater(locks.Mutex("name"))
	coretest.AwaitListeners(t, locks, "name", 1)
	_, err := locks.Mutex("name").Lock(t.Context())
	if coretest.WantErr(t, err, core.ErrTooManyWaiters); !errors.As(err, &full) || full.RetryAfter < coretest.Long-coretest.Within || full.Name != "name" {
		t.Errorf("error %v", err)
	}
	_, err = locks.Mutex("name").Lock(t.Context(), core.WithOwner("somebody")) // which might hold it
	coretest.WantErr(t, err, core.ErrTooManyWaiters)
	again := coretest.MustLock(t, coretest.NewClient(t, rdb).Mutex("other"), core.WithOwner("somebody"))
	coretest.MustLock(t, locks.Mutex("other"), core.WithOwner("somebody"))
	coretest.Unlock(t, again)
	coretest.Unlock(t, holder)
	if err := coretest.Receive(t, waits); err != nil {
		t.Error(err)
	}
}

func server(t testing.TB) redis.UniversalClient { return testkit.Start(t).Client() }
