package mutex_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
	"github.com/holdfast-go/holdfast/tests/testkit/luasource"
)

// BenchmarkPair measures a lock and unlock of a free name, alone and with many goroutines on names of their own,
// with hooks, and beside the bare script pair: the same two scripts, sent by go-redis, with nothing around them.
func BenchmarkPair(b *testing.B) {
	for _, goroutines := range []int{1, 64, 512} {
		server := testkit.Start(b, testkit.TCP())
		rdb := server.Client(func(o *redis.Options) { o.PoolSize = 64 })
		locks := coretest.NewClient(b, rdb)
		acquire, release := coretest.LuaScript(b, luasource.Acquire...), coretest.LuaScript(b, luasource.Release...)
		ctx := context.Background()
		b.Run(fmt.Sprintf("holdfast/%d", goroutines), func(b *testing.B) {
			each(b, goroutines, func(name string, _ int) error {
				lease, err := locks.Mutex(name).Lock(ctx)
				if err != nil {
					return err
				}
				return lease.Unlock(ctx)
			})
		})
		b.Run(fmt.Sprintf("hooks/%d", goroutines), func(b *testing.B) {
			hooked := coretest.NewClient(b, rdb, everyHook())
			each(b, goroutines, func(name string, _ int) error {
				lease, err := hooked.Mutex(name).Lock(ctx)
				if err != nil {
					return err
				}
				return lease.Unlock(ctx)
			})
		})
		b.Run(fmt.Sprintf("bare/%d", goroutines), func(b *testing.B) {
			each(b, goroutines, func(name string, round int) error {
				lock, tag := "lock:"+name, ":{lock:"+name+"}"
				id := "00000000-0000-4000-8000-000000000000:" + name + strconv.Itoa(b.N) + strconv.Itoa(round)
				released := "holdfast:released" + tag + ":" + id
				err := acquire.EvalSha(ctx, rdb, []string{lock, "holdfast:token", released}, id, 30000).Err()
				if err != nil {
					return err
				}
				return release.EvalSha(ctx, rdb, []string{lock}, id, "PUBLISH").Err()
			})
		})
	}
}

// everyHook sets the hooks of a lock, which do nothing.
func everyHook() core.Option {
	return core.WithHooks(core.Hooks{
		AcquireStart: func(ctx context.Context, _ core.AcquireStart) context.Context { return ctx },
		AcquireEnd:   func(context.Context, core.AcquireEnd) {},
		ReleaseStart: func(ctx context.Context, _ core.ReleaseStart) context.Context { return ctx },
		ReleaseEnd:   func(context.Context, core.ReleaseEnd) {},
	})
}

// BenchmarkReplicaAck measures a lock and unlock of a free name on a master with a replica: with nothing waited for, with
// WithReplicaAck, and with a WAIT of its own behind each acquire, as one would send it by hand.
func BenchmarkReplicaAck(b *testing.B) {
	ctx := context.Background()
	for _, goroutines := range []int{1, 64} {
		p := coretest.StartReplicated(b)
		rdb := p.Master.Client(func(o *redis.Options) { o.PoolSize = 64 })
		locks := coretest.NewClient(b, rdb)
		pair := func(opts ...core.LockOption) func(string, int) error {
			return func(name string, _ int) error {
				lease, err := locks.Mutex(name).Lock(ctx, opts...)
				if err != nil {
					return err
				}
				return lease.Unlock(ctx)
			}
		}
		b.Run(fmt.Sprintf("none/%d", goroutines), func(b *testing.B) { each(b, goroutines, pair()) })
		b.Run(fmt.Sprintf("acknowledged/%d", goroutines), func(b *testing.B) {
			each(b, goroutines, pair(core.WithReplicaAck(1, coretest.Ample)))
		})
		b.Run(fmt.Sprintf("by hand/%d", goroutines), func(b *testing.B) {
			each(b, goroutines, func(name string, _ int) error {
				lease, err := locks.Mutex(name).Lock(ctx)
				if err != nil {
					return err
				}
				_, err = rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
					pipe.Publish(ctx, name, "a write, as the acquire was")
					pipe.Do(ctx, "wait", 1, 10000)
					return nil
				})
				if err != nil {
					return err
				}
				return lease.Unlock(ctx)
			})
		})
	}
}

// BenchmarkMulti measures a lock and unlock of five free names, and of one.
func BenchmarkMulti(b *testing.B) {
	server := testkit.Start(b, testkit.TCP())
	locks := coretest.NewClient(b, server.Client())
	names := []string{"a", "b", "c", "d", "e"}
	for what, lock := range map[string]*core.Lock{
		"one": locks.Mutex("a"), "mutexes": coretest.Mutexes(locks, names...), "mutexes and a write lock": coretest.MutexesAndWrite(locks, names...),
	} {
		b.Run(what, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := lock.Do(context.Background(), func(context.Context) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// each spreads b.N rounds over goroutines, each with a name of its own.
func each(b *testing.B, goroutines int, round func(name string, round int) error) {
	b.Helper()
	var id atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(max(1, goroutines/2))
	b.RunParallel(func(pb *testing.PB) {
		n := id.Add(1)
		if n > int64(goroutines) {
			return
		}
		name := "bench" + strconv.FormatInt(n, 10)
		for i := 0; pb.Next(); i++ {
			if err := round(name, i); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkRedlock measures a lock and unlock on five masters: alone, and by four clients that contend for one name.
func BenchmarkRedlock(b *testing.B) {
	five := coretest.StartMasters(b, 5)
	var clients []*core.Redlock
	for range 4 {
		clients = append(clients, five.Redlock(b))
	}
	do := func(r *core.Redlock) error {
		return r.Mutex("name").Do(context.Background(), func(context.Context) error { return nil })
	}
	b.Run("alone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := do(clients[0]); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("contended", func(b *testing.B) {
		var left atomic.Int64
		left.Store(int64(b.N))
		var all sync.WaitGroup
		for _, r := range clients {
			all.Go(func() {
				for left.Add(-1) >= 0 {
					if err := do(r); err != nil {
						b.Error(err)
					}
				}
			})
		}
		all.Wait()
	})
}
