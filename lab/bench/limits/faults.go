package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/holdfast-go/holdfast/lab/bench/election"
	"github.com/holdfast-go/holdfast/lab/bench/measure"
	"github.com/holdfast-go/holdfast/lab/bench/xrate"
	"github.com/holdfast-go/holdfast/lab/permits"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// atOnce is how many plays run at the same time. They wait for TTLs most of the time.
const atOnce = 12

// outcomes are the worst that each play has done to each contestant.
type outcomes struct {
	mu        sync.Mutex // guards all below, and the book while contestants run together
	permits   map[played]permits.Outcome
	elections map[played]election.Outcome
}

type played struct{ play, who string }

// faults plays everything several times. x/rate takes part once, since no play has callers that wait.
func (s *settings) faults(ctx context.Context) error {
	s.outcomes.permits = make(map[played]permits.Outcome)
	s.outcomes.elections = make(map[played]election.Outcome)
	var work []func() error
	for range s.plays {
		for _, p := range permits.Plays() {
			work = append(work, func() error { return s.playPermits(ctx, p) })
		}
		for _, p := range election.Plays() {
			for _, c := range election.All() {
				work = append(work, func() error { return s.playElection(ctx, p, c) })
			}
		}
	}
	s.logf("faults: %d plays", len(work))
	return together(work)
}

// playPermits lets the contestants play one after the other.
func (s *settings) playPermits(ctx context.Context, p permits.Play) error {
	host, end := measure.Host()
	defer end()
	tasks, err := xrate.StartTasks(testkit.Start(host, testkit.TCP()).Addr(), many)
	if err != nil {
		return err
	}
	defer tasks.Close()
	for _, c := range semaphores(tasks)[:2] {
		o, err := p.Run(ctx, host, c)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", c.Name, p.Name, err)
		}
		s.outcomes.mu.Lock()
		key := played{p.Name, c.Name}
		s.outcomes.permits[key] = s.outcomes.permits[key].Worst(o)
		s.outcomes.mu.Unlock()
	}
	return nil
}

func (s *settings) playElection(ctx context.Context, p election.Play, c election.Contestant) error {
	host, end := measure.Host()
	defer end()
	o, err := p.Run(ctx, host, c, s.leadTTL)
	if err != nil {
		return err
	}
	s.outcomes.mu.Lock()
	defer s.outcomes.mu.Unlock()
	key := played{p.Name, c.Name}
	s.outcomes.elections[key] = s.outcomes.elections[key].Worst(o)
	return nil
}

// together runs all work, some of it at the same time, and returns its errors.
func together(work []func() error) error {
	var (
		running sync.WaitGroup
		errs    = make([]error, len(work))
		places  = make(chan struct{}, atOnce)
	)
	for i, do := range work {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			errs[i] = do()
		})
	}
	running.Wait()
	return errors.Join(errs...)
}
