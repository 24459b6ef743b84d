package workload

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/lab/bench/contestant"
	"github.com/holdfast-go/holdfast/lab/bench/measure"
	"github.com/redis/go-redis/v9"
)

// WorkWaiters is the workload of [Bench.ManyWaiters] in the book.
const WorkWaiters = "waiters"

// Few is what many waiters or readers are compared with.
const Few = 10

// ManyWaiters lets one client wait for very many names, which another one holds, and wakes some of them up, one by one.
func (b *Bench) ManyWaiters(ctx context.Context) error {
	for _, n := range []int{Few, b.Waiters} {
		b.logf("waiters: %d, each for a name of its own", n)
		if err := b.waitFor(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

func (b *Bench) waitFor(ctx context.Context, n int) error {
	other, holder, err := b.client(core.WithTTL(time.Hour)) // its renewals would be counted
	if err != nil {
		return err
	}
	defer other.Close()
	defer holder.Close()
	rdb, locks, err := b.client()
	if err != nil {
		return err
	}
	defer rdb.Close()
	defer locks.Close()
	prefix := fmt.Sprintf("waiter-%d-", n)
	leases, err := lockAll(ctx, holder.Mutex, prefix, n)
	if err != nil {
		return err
	}
	connections, memory := b.subscribers(ctx, other), measure.InUse()
	ctx, stop := context.WithCancel(ctx)
	woken := make([]chan time.Time, n)
	ended := make(chan struct{}, n)
	for i := range n {
		woken[i] = make(chan time.Time, 1)
		go func() {
			defer func() { ended <- struct{}{} }()
			// It fails when the rest are called off.
			if lease, err := locks.Mutex(fmt.Sprint(prefix, i)).Lock(ctx); err == nil {
				woken[i] <- time.Now()
				_ = lease.Unlock(context.WithoutCancel(ctx))
			}
		}()
	}
	defer func() {
		stop()
		for range n {
			<-ended
		}
	}()
	if err := b.awaitQuietOrLong(ctx); err != nil {
		return err
	}
	add := func(figure string, value float64) {
		b.Book.Add(measure.Key{Work: WorkWaiters, Who: "holdfast Mutex", Size: n, Figure: figure}, value)
	}
	held := measure.InUse()
	add("heap per waiter", (float64(held.Heap)-float64(memory.Heap))/float64(n))
	add("stack per waiter", (float64(held.Stacks)-float64(memory.Stacks))/float64(n))
	add("subscribed connections", b.subscribers(ctx, other)-connections)
	if err := b.wake(ctx, leases[:Few], woken, add); err != nil {
		return err
	}
	return unlockAll(ctx, leases[Few:])
}

// wake lets a few waiters in, one after the other. Between them the rest are watched, because what they send by
// themselves is no part of a wake-up.
func (b *Bench) wake(ctx context.Context, leases []*core.Lease, woken []chan time.Time, add func(string, float64)) error {
	const window = 50 * time.Millisecond
	sent := func() float64 { return measure.Loads(b.Servers[0], contestant.HoldfastSends).Commands }
	for i, lease := range leases {
		start := sent()
		time.Sleep(window)
		before, began := sent(), time.Now()
		if err := lease.Unlock(ctx); err != nil {
			return err
		}
		select {
		case at := <-woken[i]:
			add("wake-up us", float64(at.Sub(began).Microseconds()))
		case <-time.After(10 * time.Second):
			return fmt.Errorf("waiter %d was not woken", i)
		}
		time.Sleep(window - time.Since(began)) // it unlocks as well
		add("commands/s while waiting", (before-start)/window.Seconds())
		add("wake-up commands", sent()-before-(before-start))
	}
	return nil
}

// awaitQuiet returns when nobody has sent a script for a while: all that were to wait do.
func (b *Bench) awaitQuiet(ctx context.Context) error {
	for quiet, last := 0, -1.0; quiet < 3; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
		now := measure.Loads(b.Servers[0], []string{"evalsha", "eval"}).Commands
		if quiet++; now != last {
			quiet = 0
		}
		last = now
	}
	return nil
}

// subscribers counts the connections that wait for messages.
func (b *Bench) subscribers(ctx context.Context, rdb *redis.Client) float64 {
	list := rdb.Do(ctx, "client", "list", "type", "pubsub").Val()
	return float64(strings.Count(fmt.Sprint(list), "addr=")) / 2 // and laddr=
}
