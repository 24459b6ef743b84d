package readwrite_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestUpgradeIsRefused: a reader would wait for itself, so every exclusive lock on the name is refused to it at
// once, and no place in line is left.
func TestUpgradeIsRefused(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	for reader, read := range map[string]core.Strategy{"Read": locks.Read, "FairRead": locks.FairRead} {
		for writer, write := range coretest.Exclusives(locks) {
			name := reader + " to " + writer
			lease := coretest.MustLock(t, read(name))
			_, err := write(name).Lock(lease.Context())
			coretest.WantErr(t, err, core.ErrUpgrade)
			_, err = write(name).TryLock(lease.Context())
			coretest.WantErr(t, err, core.ErrUpgrade)
			coretest.Unlock(t, coretest.MustLockWith(t, lease.Context(), read(name)))
			if info, err := locks.Inspect(ctx, name); err != nil || len(info.Queue) != 0 || len(info.Holders) != 1 {
				t.Errorf("%s: %+v, %v", name, info, err)
			}
			coretest.Unlock(t, lease)
			coretest.Unlock(t, coretest.MustLock(t, write(name)))
		}
	}
}

// TestDowngrade: a writer takes the read side too and unlocks the write side first. Readers come in at once, another
// writer only after the last reader.
func TestDowngrade(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	locks, other := coretest.NewClient(t, server.Client(), core.WithTTL(coretest.Long)), coretest.NewClient(t, server.Client(), core.WithTTL(coretest.Long))
	for name, write := range coretest.Exclusives(locks) {
		writing := coretest.MustLock(t, write(name))
		reading := coretest.MustLockWith(t, writing.Context(), locks.Read(name))
		if reading.Token() != writing.Token() {
			t.Errorf("%s: tokens %d and %d of one owner", name, reading.Token(), writing.Token())
		}
		waiting := coretest.LockLater(other.Read(name))
		coretest.AwaitQueue(t, locks, name, 1)
		coretest.Unlock(t, writing)
		if err := coretest.Receive(t, waiting); err != nil {
			t.Errorf("%s: reader: %v", name, err)
		}
		coretest.WantErr(t, coretest.TryLock(other.Mutex(name)), core.ErrNotAcquired)
		writer := coretest.LockLater(other.Write(name))
		coretest.AwaitQueue(t, locks, name, 1)
		_, err := other.Read(name).TryLock(ctx) // held back by the writer
		coretest.WantErr(t, err, core.ErrNotAcquired)
		coretest.Unlock(t, coretest.MustLockWith(t, reading.Context(), locks.Read(name))) // but the reader itself is not
		coretest.Unlock(t, reading)
		if err := coretest.Receive(t, writer); err != nil {
			t.Errorf("%s: writer: %v", name, err)
		}
	}
}

var nestSeed = flag.Uint64("nest.seed", 0, "of the courses of TestStrategiesNest, 0 for a random one")

// TestStrategiesNest: an owner enters a name by one strategy inside the other and leaves in any order. The name is
// taken until the last has left, then it is free.
func TestStrategiesNest(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks, other := coretest.NewClient(t, server.Client(), core.WithTTL(coretest.Long)), coretest.NewClient(t, server.Client())
	seed := cmp.Or(*nestSeed, rand.Uint64())
	random := rand.New(rand.NewPCG(seed, 0))
	defer func() {
		if t.Failed() {
			t.Log(testkit.Again(t, fmt.Sprint("-nest.seed=", seed)))
		}
	}()
	exclusive, all := coretest.Exclusives(locks), coretest.Strategies(locks)
	names := []string{"Mutex", "Fair", "Write", "FairWrite", "Read", "FairRead"}
	for round := range 60 {
		name := fmt.Sprint("name", round)
		way := []string{names[random.IntN(4)]}
		outer := coretest.MustLock(t, exclusive[way[0]](name))
		leases := []*core.Lease{outer}
		for range 1 + random.IntN(4) {
			next := names[random.IntN(len(names))]
			way = append(way, next)
			leases = append(leases, coretest.MustLockWith(t, outer.Context(), all[next](name)))
		}
		random.Shuffle(len(leases), func(i, j int) { leases[i], leases[j] = leases[j], leases[i] })
		for _, l := range leases {
			if err := coretest.TryLock(other.Fair(name)); err == nil {
				t.Errorf("%v: free too early", way)
			}
			if l.Token() != outer.Token() {
				t.Errorf("%v: tokens %d and %d", way, l.Token(), outer.Token())
			}
			coretest.Unlock(t, l)
		}
		if err := coretest.TryLock(other.Mutex(name)); err != nil {
			t.Errorf("%v: not free: %v", way, err)
		}
	}
}

// TestHoldsHaveTheirOwnTime: neither a longer nor a renewed hold of another owner changes when a hold ends.
func TestHoldsHaveTheirOwnTime(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb)
	short := coretest.MustLock(t, locks.Read("name"), core.WithFixedTTL(30*time.Second))
	longer := coretest.MustLock(t, locks.Read("name"), core.WithFixedTTL(coretest.Long))
	left := func(l *core.Lease) time.Duration {
		info, err := locks.Inspect(ctx, "name")
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range info.Holders {
			if h.Owner == l.Owner() {
				return h.TTL
			}
		}
		return 0
	}
	if err := longer.Extend(ctx, 2*coretest.Long); err != nil {
		t.Errorf("extend: %v", err)
	}
	if got := left(short); got > 30*time.Second || got < 30*time.Second-coretest.Within {
		t.Errorf("the short hold has %v left", got)
	}
	coretest.Unlock(t, longer)
	if got := rdb.PTTL(ctx, "lock:name").Val(); got > 30*time.Second {
		t.Errorf("the lock has %v left after the long hold has ended", got)
	}
	if err := short.Extend(ctx, 10*time.Second); err != nil { // prolongs nothing, and shortens nothing
		t.Errorf("extend: %v", err)
	}
	if got := left(short); got < 30*time.Second-coretest.Within {
		t.Errorf("the short hold has %v left", got)
	}
	coretest.Unlock(t, short)
}
