package workload

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/lab/bench/contestant"
	"github.com/holdfast-go/holdfast/lab/bench/measure"
	"github.com/redis/go-redis/v9"
)

// WorkLeases is the workload of [Bench.ManyLeases] in the book.
const WorkLeases = "leases"

// ManyLeases lets one client hold very many locks at once. What it costs is taken from when all are held.
func (b *Bench) ManyLeases(ctx context.Context) error {
	b.logf("leases: %d for %v", b.Leases, b.LeaseTime)
	var renewed atomic.Int64
	goroutines, memory := settled(), measure.InUse()
	rdb, locks, err := b.client(core.WithHooks(core.Hooks{Renewed: func(context.Context, core.Renewed) { renewed.Add(1) }}))
	if err != nil {
		return err
	}
	defer rdb.Close()
	defer locks.Close()
	leases, err := lockAll(ctx, locks.Mutex, "lease", b.Leases)
	if err != nil {
		return err
	}
	add := func(figure string, value float64) {
		b.Book.Add(measure.Key{Work: WorkLeases, Who: "holdfast Mutex", Size: b.Leases, Figure: figure}, value)
	}
	held := measure.InUse()
	add("heap per lease", (float64(held.Heap)-float64(memory.Heap))/float64(b.Leases))
	reads, before, cpu, began := b.reads(), renewed.Load(), measure.OwnCPUTime(), time.Now()
	most, err := mostGoroutines(ctx, b.LeaseTime)
	if err != nil {
		return err
	}
	took := time.Since(began)
	add("cpu", (measure.OwnCPUTime()-cpu).Seconds()/took.Seconds())
	add("renewals per read", float64(renewed.Load()-before)/max(1, b.reads()-reads))
	add("renewals/s", float64(renewed.Load()-before)/took.Seconds())
	add("goroutines", float64(most-goroutines))
	add("lost", lost(leases))
	add("seconds", took.Seconds())
	return unlockAll(ctx, leases)
}

// settled returns the number of goroutines once the goroutines of the previous workload are gone.
func settled() int {
	least := runtime.NumGoroutine()
	for range 10 {
		time.Sleep(50 * time.Millisecond)
		least = min(least, runtime.NumGoroutine())
	}
	return least
}

// mostGoroutines returns how many there were at most while so long a time went by.
func mostGoroutines(ctx context.Context, limit time.Duration) (most int, err error) {
	for began := time.Now(); time.Since(began) < limit; {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(100 * time.Millisecond):
			most = max(most, runtime.NumGoroutine())
		}
	}
	return most, nil
}

func lost(leases []*core.Lease) (n float64) {
	for _, lease := range leases {
		select {
		case <-lease.Done():
			n++
		default:
		}
	}
	return n
}

// reads is how often the first server has found something to read: as often as it got a batch, or more often, if a
// batch was long.
func (b *Bench) reads() float64 {
	n, _ := strconv.ParseFloat(b.Servers[0].Info("stats", "total_reads_processed"), 64)
	return n
}

// client is one of holdfast, on the first server.
func (b *Bench) client(opts ...core.Option) (*redis.Client, *core.Client, error) {
	rdb := redis.NewClient(&redis.Options{Addr: b.Servers[0].Addr(), PoolSize: contestant.Connections})
	locks, err := core.New(rdb, append([]core.Option{core.WithTTL(contestant.TTL)}, opts...)...)
	return rdb, locks, err
}

// takers is how many goroutines take and release many locks.
const takers = 256

// lockAll takes the locks of n names, by as many goroutines as keep a client busy.
func lockAll(ctx context.Context, strategy core.Strategy, name string, n int) ([]*core.Lease, error) {
	leases := make([]*core.Lease, n)
	err := spread(n, func(i int) (err error) {
		leases[i], err = strategy(fmt.Sprint(name, i)).Lock(ctx)
		return err
	})
	return leases, err
}

func unlockAll(ctx context.Context, leases []*core.Lease) error {
	return spread(len(leases), func(i int) error {
		if err := leases[i].Unlock(ctx); err != nil && !errors.Is(err, core.ErrLeaseLost) {
			return err
		}
		return nil
	})
}

func spread(n int, do func(i int) error) error {
	errs := make([]error, takers)
	var all sync.WaitGroup
	for taker := range takers {
		all.Go(func() {
			for i := taker; i < n && errs[taker] == nil; i += takers {
				errs[taker] = do(i)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
