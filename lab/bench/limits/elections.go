package main

import (
	"context"

	"github.com/holdfast-go/holdfast/lab/bench/election"
	"github.com/holdfast-go/holdfast/lab/bench/measure"
)

const workElections = "elections"

// elections measures resignations one contestant after the other, because they take milliseconds. What takes a TTL is
// measured of all at the same time.
func (s *settings) elections(ctx context.Context) error {
	s.logf("elections: %d resignations, %d crashes", s.resignations, s.crashes)
	for _, c := range election.All() {
		host, end := measure.Host()
		took, err := election.Resignations(ctx, host, c, s.leadTTL, s.resignations)
		end()
		if err != nil {
			return err
		}
		s.book.AddAll(electionKey(c.Name, "resignation us"), measure.Microseconds(took))
	}
	var work []func() error
	for _, c := range election.All() {
		work = append(work, func() error { return s.slowElections(ctx, c) })
	}
	return together(work)
}

func (s *settings) slowElections(ctx context.Context, c election.Contestant) error {
	host, end := measure.Host()
	defer end()
	took, err := election.Crashes(ctx, host, c, s.leadTTL, s.crashes)
	if err != nil {
		return err
	}
	rate, err := election.Idle(ctx, host, c, s.leadTTL, s.idle)
	if err != nil {
		return err
	}
	s.outcomes.mu.Lock()
	defer s.outcomes.mu.Unlock()
	for _, t := range took {
		s.book.Add(electionKey(c.Name, "crash TTL"), t.Seconds()/s.leadTTL.Seconds())
	}
	s.book.Add(electionKey(c.Name, "idle commands/s"), rate)
	return nil
}

func electionKey(who, figure string) measure.Key {
	return measure.Key{Work: workElections, Who: who, Size: election.Size, Figure: figure}
}
