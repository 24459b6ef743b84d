package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

const (
	renewedTTL  = 6 * time.Second // of leases that are renewed every two seconds
	renewedTime = 6 * time.Second
)

// renewals measures leases of one client, whose renewals share pipelines. What a renewal costs that is sent by itself follows
// from the read and write of its own, which cost as much as a lock's.
func renewals(ctx context.Context, s *site, lock Operation) (o Operation, err error) {
	logf("renewals: %d leases", kept)
	var renewed atomic.Int64
	f, err := s.fleet(ctx, 1, core.WithTTL(renewedTTL), core.WithHooks(core.Hooks{
		Renewed: func(context.Context, core.Renewed) { renewed.Add(1) },
	}))
	if err != nil {
		return o, err
	}
	defer f.close()
	leases := make([]*core.Lease, kept)
	if err := spread(kept, func(i int) (err error) {
		leases[i], err = f.clients[0].Mutex(f.name()).Lock(ctx)
		return err
	}); err != nil {
		return o, err
	}
	taken, err := s.watch(ctx, func() (map[string]float64, error) {
		before := renewed.Load()
		time.Sleep(renewedTime)
		return map[string]float64{"": float64(renewed.Load() - before)}, ctx.Err()
	})
	if err != nil {
		return o, err
	}
	n, used := taken.operations(), taken.total()
	o = Operation{
		Commands: used.Commands / n, Batched: micros(used.CPU) / n, PerRead: used.Commands / used.Reads, Idle: lock.Idle,
		In: used.In / n, Out: used.Out / n, Client: micros(taken.client) / n,
	}
	o.Warm = o.Batched + o.Commands*lock.perConnection()*(1-1/o.PerRead)
	return o, spread(kept, func(i int) error { return leases[i].Unlock(ctx) })
}

// perConnection is what a read and a write cost, found from commands that share them and commands that do not.
func (o Operation) perConnection() float64 {
	return (o.Warm - o.Batched) / o.Commands / (1 - 1/o.PerRead)
}
