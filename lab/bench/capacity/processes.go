package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/lab/bench/report"
)

const (
	manyClients = 1000
	manyNames   = 10_000          // that one client waits for
	watched     = 6 * time.Second // for how long each state of the clients is watched
	shortTTL    = 3 * time.Second // of leases that are renewed once a second
)

// manyProcesses measures what clients do by themselves. Each has connections of its own, as a process has.
func manyProcesses(ctx context.Context, s *site) (p Processes, err error) {
	before, err := s.usage(ctx)
	if err != nil {
		return p, err
	}
	f, err := s.fleet(ctx, manyClients, core.WithTTL(shortTTL))
	if err != nil {
		return p, err
	}
	defer f.close()
	after, err := s.usage(ctx)
	if err != nil {
		return p, err
	}
	connected := after[0].Since(before[0])
	p.Clients, p.Memory = manyClients, connected.Memory/connected.Clients
	add := func(of *fleet, state ProcessState) error {
		logf("processes: %d, each %s", len(of.clients), state.Name)
		err := of.stateOf(ctx, &state)
		p.States = append(p.States, state)
		return err
	}
	if err := add(f, ProcessState{Name: "is idle"}); err != nil {
		return p, err
	}
	if err := f.holding(ctx, func() error {
		return add(f, ProcessState{Name: "renews a lease every second"})
	}); err != nil {
		return p, err
	}
	one, err := s.fleet(ctx, 1)
	if err != nil {
		return p, err
	}
	defer one.close()
	for _, of := range strategies()[:2] {
		for _, who := range []struct {
			*fleet
			names int
		}{{f, 1}, {one, manyNames}} {
			state := ProcessState{Waits: of.name, Names: who.names, Name: waitsFor(of, who.names)}
			if err := who.waiting(ctx, of, who.names, func() error { return add(who.fleet, state) }); err != nil {
				return p, err
			}
		}
	}
	return p, nil
}

func waitsFor(of strategy, names int) string {
	if names == 1 {
		return "waits for one name of `" + of.name + "`"
	}
	return fmt.Sprintf("waits for %s names of `%s`", report.Number(float64(names)), of.name)
}

// stateOf watches what the clients do now.
func (f *fleet) stateOf(ctx context.Context, p *ProcessState) error {
	taken, err := f.watch(ctx, func() (map[string]float64, error) {
		time.Sleep(watched)
		return nil, ctx.Err()
	})
	if err != nil {
		return err
	}
	used, n := taken.total(), float64(len(f.clients))
	p.Commands, p.CPU, p.Client = used.Commands/n/taken.seconds, micros(used.CPU)/n/taken.seconds,
		micros(taken.client)/n/taken.seconds
	for _, rdb := range f.rdbs {
		p.Connections += float64(rdb.PoolStats().TotalConns+rdb.PoolStats().PubSubStats.Active) / n
	}
	return nil
}

// holding calls then while each client holds a lease.
func (f *fleet) holding(ctx context.Context, then func() error) error {
	leases := make([]*core.Lease, len(f.clients))
	if err := spread(len(leases), func(i int) (err error) {
		leases[i], err = f.clients[i].Mutex(f.name()).Lock(ctx)
		return err
	}); err != nil {
		return err
	}
	if err := then(); err != nil {
		return err
	}
	return spread(len(leases), func(i int) error { return leases[i].Unlock(ctx) })
}

// waiting calls then while each client waits for names that another client holds, whose renewals are rare.
func (f *fleet) waiting(ctx context.Context, of strategy, each int, then func() error) error {
	holder, err := f.site.fleet(ctx, 1, core.WithTTL(time.Hour))
	if err != nil {
		return err
	}
	defer holder.close()
	names := make([]string, each*len(f.clients))
	if err := spread(len(names), func(i int) error {
		names[i] = f.name()
		_, err := of.of(holder.clients[0], names[i]).Lock(ctx)
		return err
	}); err != nil {
		return err
	}
	waits, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	for i, name := range names {
		all.Go(func() { _, _ = of.of(f.clients[i/each], name).Lock(waits) }) // it ends with waits
	}
	time.Sleep(3 * time.Second) // until all have subscribed
	return then()
}
