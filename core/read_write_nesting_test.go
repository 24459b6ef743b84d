package core_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestUpgradeIsRefused: a reader would wait for itself, so every exclusive lock on the name is refused to it at
// once, and no place in line is left.
func TestUpgradeIsRefused(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := newClient(t, rdb, core.WithTTL(long))
	for reader, read := range map[string]core.Strategy{"Read": locks.Read, "FairRead": locks.FairRead} {
		for writer, write := range exclusives(locks) {
			name := reader + " to " + writer
			lease := mustLock(t, read(name))
			_, err := write(name).Lock(lease.Context())
			wantErr(t, err, core.ErrUpgrade)
			_, err = write(name).TryLock(lease.Context())
			wantErr(t, err, core.ErrUpgrade)
			unlock(t, mustLockWith(t, lease.Context(), read(name)))
			if info, err := locks.Inspect(ctx, name); err != nil || len(info.Queue) != 0 || len(info.Holders) != 1 {
				t.Errorf("%s: %+v, %v", name, info, err)
			}
			unlock(t, lease)
			unlock(t, mustLock(t, write(name)))
		}
	}
}

// TestDowngrade: a writer takes the read side too and unlocks the write side first. Readers come in at once, another
// writer only after the last reader.
func TestDowngrade(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	locks, other := newClient(t, server.Client(), core.WithTTL(long)), newClient(t, server.Client(), core.WithTTL(long))
	for name, write := range exclusives(locks) {
		writing := mustLock(t, write(name))
		reading := mustLockWith(t, writing.Context(), locks.Read(name))
		if reading.Token() != writing.Token() {
			t.Errorf("%s: tokens %d and %d of one owner", name, reading.Token(), writing.Token())
		}
		waiting := lockLater(other.Read(name))
		awaitQueue(t, locks, name, 1)
		unlock(t, writing)
		if err := receive(t, waiting); err != nil {
			t.Errorf("%s: reader: %v", name, err)
		}
		wantErr(t, tryLock(other.Mutex(name)), core.ErrNotAcquired)
		writer := lockLater(other.Write(name))
		awaitQueue(t, locks, name, 1)
		_, err := other.Read(name).TryLock(ctx) // held back by the writer
		wantErr(t, err, core.ErrNotAcquired)
		unlock(t, mustLockWith(t, reading.Context(), locks.Read(name))) // but the reader itself is not
		unlock(t, reading)
		if err := receive(t, writer); err != nil {
			t.Errorf("%s: writer: %v", name, err)
		}
	}
}

// TestStrategiesNest: an owner enters a name by one strategy inside the other and leaves in any order. The name is
// taken until the last has left, then it is free.
func TestStrategiesNest(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks, other := newClient(t, server.Client(), core.WithTTL(long)), newClient(t, server.Client())
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	exclusive, all := exclusives(locks), strategies(locks)
	names := []string{"Mutex", "Fair", "Write", "FairWrite", "Read", "FairRead"}
	for round := range 60 {
		name := fmt.Sprint("name", round)
		way := []string{names[random.IntN(4)]}
		outer := mustLock(t, exclusive[way[0]](name))
		leases := []*core.Lease{outer}
		for range 1 + random.IntN(4) {
			next := names[random.IntN(len(names))]
			way = append(way, next)
			leases = append(leases, mustLockWith(t, outer.Context(), all[next](name)))
		}
		random.Shuffle(len(leases), func(i, j int) { leases[i], leases[j] = leases[j], leases[i] })
		for _, l := range leases {
			if err := tryLock(other.Fair(name)); err == nil {
				t.Errorf("seed %d, %v: free too early", seed, way)
			}
			if l.Token() != outer.Token() {
				t.Errorf("seed %d, %v: tokens %d and %d", seed, way, l.Token(), outer.Token())
			}
			unlock(t, l)
		}
		if err := tryLock(other.Mutex(name)); err != nil {
			t.Errorf("seed %d, %v: not free: %v", seed, way, err)
		}
	}
}

// TestHoldsHaveTheirOwnTime: neither a longer nor a renewed hold of another owner changes when a hold ends.
func TestHoldsHaveTheirOwnTime(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := newClient(t, rdb)
	short := mustLock(t, locks.Read("name"), core.WithFixedTTL(30*time.Second))
	longer := mustLock(t, locks.Read("name"), core.WithFixedTTL(long))
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
	if err := longer.Extend(ctx, 2*long); err != nil {
		t.Errorf("extend: %v", err)
	}
	if got := left(short); got > 30*time.Second || got < 30*time.Second-within {
		t.Errorf("the short hold has %v left", got)
	}
	unlock(t, longer)
	if got := rdb.PTTL(ctx, "lock:name").Val(); got > 30*time.Second {
		t.Errorf("the lock has %v left after the long hold has ended", got)
	}
	if err := short.Extend(ctx, 10*time.Second); err != nil { // prolongs nothing, and shortens nothing
		t.Errorf("extend: %v", err)
	}
	if got := left(short); got < 30*time.Second-within {
		t.Errorf("the short hold has %v left", got)
	}
	unlock(t, short)
}
