package main

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/lab/bench/report"
)

const (
	checkTime = 6 * time.Second
	checkHold = 50 * time.Millisecond
	// buffersGone is after how long the server has made the buffers of idle connections smaller.
	buffersGone = 5 * time.Second
	heldAside   = 10_000 // leases that are held, and renewed every ten seconds, beside the mixed load
)

// Check compares a prediction with a run of the real thing.
type Check struct {
	Load       string  `json:"load"`
	Leases     float64 `json:"leases"`     // held beside
	Share      float64 `json:"share"`      // of the most operations a second that this machine can do
	PerSecond  float64 `json:"perSecond"`  // operations
	Commands   float64 `json:"commands"`   // a second
	PerCommand float64 `json:"perCommand"` // reads: fewer than 1 if commands share pipelines
	Predicted  Range   `json:"predicted"`
	Measured   float64 `json:"measured"`
}

// MemoryCheck compares bytes.
type MemoryCheck struct{ Predicted, Measured float64 }

// shares are how much of what the machine can do is checked.
var shares = []float64{0.25, 0.5, 0.8}

// mixed is the mix of operations, by their share of 1.
var mixed = map[string]float64{"Mutex": 0.5, "Fair": 0.2, "Read": 0.1, "Write": 0.05, onceName: 0.15}

// checks compares predictions with one strategy and with a mix of all, beside leases that are renewed.
func checks(ctx context.Context, s *site, costs Costs) (all []Check, m MemoryCheck, err error) {
	f, err := s.fleet(ctx, processes)
	if err != nil {
		return nil, m, err
	}
	defer f.close()
	all, _, err = f.check(ctx, costs, Check{Load: "Mutex"}, []share{{works()[0], 1}})
	if err != nil {
		return nil, m, err
	}
	if err := s.flush(ctx); err != nil {
		return nil, m, err
	}
	time.Sleep(buffersGone)
	before, err := s.usage(ctx)
	if err != nil {
		return nil, m, err
	}
	aside, err := s.fleet(ctx, 1)
	if err != nil {
		return nil, m, err
	}
	defer aside.close() // which unlocks
	if err := spread(heldAside, func(int) error {
		_, err := aside.clients[0].Mutex(f.name()).Lock(ctx)
		return err
	}); err != nil {
		return nil, m, err
	}
	beside := Check{Load: "all operations, and " + report.Number(heldAside) + " leases", Leases: heldAside}
	more, records, err := f.check(ctx, costs, beside, mix())
	if err != nil {
		return nil, m, err
	}
	time.Sleep(marksGone)
	after, err := s.usage(ctx)
	if err != nil {
		return nil, m, err
	}
	added := after[0].Since(before[0])
	m.Measured = added.Memory
	m.Predicted = heldAside*costs.Memory.Held["Mutex"] + records*costs.Memory.Record + added.Clients*costs.Processes.Memory
	return append(all, more...), m, nil
}

func mix() (all []share) {
	for _, w := range works() {
		all = append(all, share{w, mixed[w.name]})
	}
	return all
}

// check measures the shares of what the machine can do. It also returns how many records of Once there are after that.
func (f *fleet) check(ctx context.Context, costs Costs, of Check, mix []share) (all []Check, records float64, err error) {
	most, err := f.most(ctx, mix)
	if err != nil {
		return nil, 0, err
	}
	for _, s := range mix {
		if s.name == onceName {
			records = s.perSecond * most.operations()
		}
	}
	for _, part := range shares {
		rate := most.operations() / most.seconds
		logf("check: %s at %.0f%% of %.0f/s", of.Load, percent*part, rate)
		var rates []share
		for _, s := range mix {
			rates = append(rates, share{s.work, s.perSecond * part * rate})
		}
		taken, err := f.poisson(ctx, rates, checkHold, checkTime)
		if err != nil {
			return nil, 0, err
		}
		records += taken.done[onceName]
		of.Share = part
		all = append(all, of.compare(costs, taken))
	}
	return all, records, nil
}

// most is what the machine can do of a mix.
func (f *fleet) most(ctx context.Context, mix []share) (sample, error) {
	return f.closed(ctx, work{"", func(ctx context.Context, c *core.Client, name string, hold time.Duration) error {
		return pick(mix, 1).do(ctx, c, name, hold)
	}}, 1, 3*time.Second)
}

// compare predicts from what was done, not from what was intended.
func (k Check) compare(costs Costs, taken sample) Check {
	var load Load
	for work, n := range taken.done {
		load.Add(costs.Operations[work], n/taken.seconds)
	}
	load.Add(costs.Renewal, k.Leases/(ttl/renewalsPerTTL).Seconds())
	used := taken.total()
	k.PerSecond, k.Commands = taken.operations()/taken.seconds, used.Commands/taken.seconds
	k.PerCommand, k.Predicted, k.Measured = used.Reads/used.Commands, load.Utilisation(), taken.utilisation()
	return k
}
