package main

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/lab/bench/measure"
)

const (
	rounds    = 5
	processes = 64               // clients that stand for processes
	callers   = 64               // of one client, which share pipelines
	calmRate  = 4000             // operations a second that find the server idle most of the time
	ttl       = 30 * time.Second // the default of holdfast
)

// rawOperation is an operation as measured, one value a round.
type rawOperation struct{ commands, batched, perRead, warm, idle, in, out, client []float64 }

// operations measures each work three ways: by many callers of one client, by many clients at full load, and by many
// clients at a low load. Works take turns, so that what the machine does beside hits all.
func operations(ctx context.Context, s *site) (map[string]Operation, error) {
	one, err := s.fleet(ctx, 1)
	if err != nil {
		return nil, err
	}
	defer one.close()
	many, err := s.fleet(ctx, processes)
	if err != nil {
		return nil, err
	}
	defer many.close()
	raw := make(map[string]*rawOperation)
	for round := range rounds {
		logf("operations: round %d of %d", round+1, rounds)
		for _, w := range works() {
			if raw[w.name] == nil {
				raw[w.name] = new(rawOperation)
			}
			if err := raw[w.name].round(ctx, w, one, many); err != nil {
				return nil, err
			}
		}
	}
	costs := make(map[string]Operation)
	for name, r := range raw {
		costs[name] = r.median()
	}
	return costs, nil
}

func (r *rawOperation) round(ctx context.Context, w work, one, many *fleet) error {
	if err := one.flush(ctx); err != nil {
		return err
	}
	batched, err := one.closed(ctx, w, callers, 700*time.Millisecond)
	if err != nil {
		return err
	}
	busy, err := many.closed(ctx, w, 1, 700*time.Millisecond)
	if err != nil {
		return err
	}
	calm, err := many.poisson(ctx, []share{{w, calmRate}}, 20*time.Millisecond, 1500*time.Millisecond)
	if err != nil {
		return err
	}
	r.add(batched, busy, calm)
	return nil
}

// add derives the costs from the three samples.
func (r *rawOperation) add(batched, busy, calm sample) {
	n, used, shared := busy.operations(), busy.total(), batched.total()
	commands := used.Commands / n
	warm, idle := warmAndIdle(busy.point(), calm.point())
	r.commands = append(r.commands, commands)
	r.in, r.out = append(r.in, used.In/n), append(r.out, used.Out/n)
	r.batched = append(r.batched, micros(shared.CPU)/batched.operations())
	r.perRead = append(r.perRead, shared.Commands/shared.Reads)
	r.warm, r.idle = append(r.warm, warm*commands), append(r.idle, idle)
	r.client = append(r.client, micros(busy.client)/n)
}

func (r *rawOperation) median() Operation {
	return Operation{
		Commands: measure.Median(r.commands), Batched: measure.Median(r.batched), PerRead: measure.Median(r.perRead),
		Warm: measure.Median(r.warm), Idle: measure.Median(r.idle), In: measure.Median(r.in), Out: measure.Median(r.out),
		Client: measure.Median(r.client),
	}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
