package workload

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/lab/bench/contestant"
	"github.com/holdfast-go/holdfast/lab/bench/measure"
)

// WorkCrowd is the workload of [Bench.Crowd] in the book.
const WorkCrowd = "crowd"

// crowdRounds is how often few and many take turns.
const crowdRounds = 3

// Crowd measures what the server needs for one operation beside few others and beside very many.
func (b *Bench) Crowd(ctx context.Context) error {
	for round := range crowdRounds {
		for _, n := range []int{Few, b.Waiters} {
			b.logf("crowd: round %d, %d fair waiters", round+1, n)
			if err := b.fairCrowd(ctx, round, n); err != nil {
				return err
			}
		}
		for _, n := range []int{Few, b.Readers} {
			b.logf("crowd: round %d, %d readers", round+1, n)
			if err := b.readCrowd(ctx, round, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// fairCrowd lets all waiters stand in one line before it begins: each that was let in stands in line again.
func (b *Bench) fairCrowd(ctx context.Context, round, n int) error {
	rdb, locks, err := b.client()
	if err != nil {
		return err
	}
	defer rdb.Close()
	defer locks.Close()
	lock := locks.Fair(fmt.Sprintf("crowd-%d-%d", round, n))
	first, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	crowd, stop := context.WithCancel(ctx)
	var grants atomic.Int64
	var all sync.WaitGroup
	for range n - 1 {
		all.Go(func() {
			for {
				lease, err := lock.Lock(crowd)
				if err != nil {
					return // called off
				}
				grants.Add(1)
				_ = lease.Unlock(ctx)
			}
		})
	}
	defer all.Wait()
	defer stop()
	if err := b.awaitQuietOrLong(ctx); err != nil {
		return err
	}
	if err := first.Unlock(ctx); err != nil {
		return err
	}
	b.addCrowd("Fair", n, b.usecDuring(ctx, time.Second, grants.Load))
	return ctx.Err()
}

// readCrowd lets one more reader come and go beside so many that stay.
func (b *Bench) readCrowd(ctx context.Context, round, n int) error {
	rdb, locks, err := b.client()
	if err != nil {
		return err
	}
	defer rdb.Close()
	defer locks.Close()
	name := fmt.Sprintf("readers-%d-%d", round, n)
	leases, err := lockAll(ctx, func(string, ...core.LockOption) *core.Lock { return locks.Read(name) }, name, n)
	if err != nil {
		return err
	}
	end := time.Now().Add(time.Second)
	usec := b.usecDuring(ctx, 0, func() int64 {
		var pairs int64
		for ; time.Now().Before(end) && err == nil; pairs++ {
			var lease *core.Lease
			if lease, err = locks.Read(name).Lock(ctx); err == nil {
				err = lease.Unlock(ctx)
			}
		}
		return pairs
	})
	if err != nil {
		return err
	}
	b.addCrowd("Read", n, usec)
	return unlockAll(ctx, leases)
}

// usecDuring returns the server's time for each operation, of which count tells how many there were after the time.
func (b *Bench) usecDuring(ctx context.Context, limit time.Duration, count func() int64) float64 {
	sends := contestant.HoldfastSends
	before := measure.Loads(b.Servers[0], sends)
	select {
	case <-time.After(limit):
	case <-ctx.Done():
	}
	operations := count()
	return measure.Loads(b.Servers[0], sends).Since(before).Usec / max(1, float64(operations))
}

func (b *Bench) addCrowd(who string, n int, usec float64) {
	b.Book.Add(measure.Key{Work: WorkCrowd, Who: "holdfast " + who, Size: n, Figure: "server us"}, usec)
}

// awaitQuietOrLong is for waiters who send something now and then: signs of life, and whether the lock is still held.
func (b *Bench) awaitQuietOrLong(ctx context.Context) error {
	limited, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	_ = b.awaitQuiet(limited) // enough
	return ctx.Err()
}
