package permits

import (
	"context"
	"sync"
	"time"
)

// Contest is a time in which callers take a permit, hold it and ask again at once.
type Contest struct {
	Callers int
	Hold    time.Duration
	Length  time.Duration
}

// Contested is what came of a contest.
type Contested struct {
	Grants int
	// Waits are the times from asking to the grant. Those that were not over at the end count as so long.
	Waits []time.Duration
	Took  time.Duration
}

// Run lets the callers of all processes contend. Callers are numbered across the processes.
func (c Contest) Run(ctx context.Context, processes []Process) (Contested, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, c.Length)
	defer cancel()
	var (
		mu    sync.Mutex // guards those below
		all   Contested
		first error
	)
	var callers sync.WaitGroup
	for caller := range c.Callers {
		callers.Go(func() {
			waits, grants, err := c.turns(ctx, processes[caller%len(processes)], caller)
			mu.Lock()
			defer mu.Unlock()
			all.Waits, all.Grants = append(all.Waits, waits...), all.Grants+grants
			if first == nil {
				first = err
			}
		})
	}
	callers.Wait()
	all.Took = time.Since(began)
	return all, first
}

// turns are the turns of one caller, until ctx ends.
func (c Contest) turns(ctx context.Context, p Process, caller int) (waits []time.Duration, grants int, err error) {
	for {
		asked := time.Now()
		permit, err := p.Acquire(ctx, caller)
		waits = append(waits, time.Since(asked))
		if ctx.Err() != nil {
			err = nil
		}
		if permit == nil || err != nil {
			return waits, grants, err
		}
		grants++
		if c.Hold > 0 {
			time.Sleep(c.Hold)
		}
		if err := permit.Release(context.WithoutCancel(ctx)); err != nil {
			return waits, grants, err
		}
		if ctx.Err() != nil {
			return waits, grants, nil
		}
	}
}
