package main

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/lab/bench/measure"
)

// contests are how many processes, and callers of each, want one name.
var contests = []struct{ processes, callers int }{{1, 64}, {8, 8}, {64, 1}}

// handOvers lets all callers lock one name, again and again, and hold it for no time.
func handOvers(ctx context.Context, s *site) (all []HandOver, err error) {
	for _, contest := range contests {
		f, err := s.fleet(ctx, contest.processes)
		if err != nil {
			return nil, err
		}
		for _, of := range strategies()[:2] {
			logf("hand-overs: %d processes with %d callers, %s", contest.processes, contest.callers, of.name)
			h := HandOver{Strategy: of.name, Processes: contest.processes, Callers: contest.callers}
			if err := h.measure(ctx, f, of); err != nil {
				return nil, err
			}
			all = append(all, h)
		}
		if err := f.close(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (h *HandOver) measure(ctx context.Context, f *fleet, of strategy) error {
	hot := work{of.name, func(ctx context.Context, c *core.Client, _ string, hold time.Duration) error {
		return of.pair(ctx, c, "hot", hold)
	}}
	var rates, commands, cpu []float64
	for range 3 {
		taken, err := f.closed(ctx, hot, h.Callers, time.Second)
		if err != nil {
			return err
		}
		n, used := taken.operations(), taken.total()
		rates, commands, cpu = append(rates, n/taken.seconds), append(commands, used.Commands/n), append(cpu, micros(used.CPU)/n)
	}
	h.PerSecond, h.Commands, h.CPU = measure.Median(rates), measure.Median(commands), measure.Median(cpu)
	return nil
}
