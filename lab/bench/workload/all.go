package workload

import "context"

// Workload can be chosen by its name.
type Workload struct {
	Name string
	Run  func(context.Context) error
}

// Workloads returns all of them, in the order in which they run.
func (b *Bench) Workloads() []Workload {
	return []Workload{
		// First, because they count the goroutines and the memory of the process.
		{WorkLeases, b.ManyLeases},
		{WorkWaiters, b.ManyWaiters},
		{WorkPairs, b.Pairs},
		{WorkContest, b.Contest},
		{WorkBarging, b.Barging},
		{WorkInside, b.Inside},
		{WorkOnce, b.Once},
		{WorkCrowd, b.Crowd},
	}
}
