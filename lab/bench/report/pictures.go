package report

import (
	"github.com/holdfast-go/holdfast/lab/bench/contestant"
	"github.com/holdfast-go/holdfast/lab/bench/measure"
	"github.com/holdfast-go/holdfast/lab/bench/workload"
)

// The files of the pictures, beside the page.
const (
	ThroughputFile = "throughput.svg"
	WaitsFile      = "waits.svg"
)

// Throughput draws pairs per second over goroutines.
func Throughput(book *measure.Book, all []contestant.Contestant) string {
	c := chart{
		title: "Lock and unlock of free names",
		x:     axis{label: "goroutines", low: 1, top: 512, ticks: []float64{1, 64, 512}, text: plain},
		y: axis{
			label: "pairs per second", low: 1000, top: 200_000,
			ticks: []float64{1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000}, text: Number,
		},
	}
	for i, k := range all {
		l := line{name: k.Name, colour: i}
		for _, size := range workload.PairSizes {
			key := measure.Key{Work: workload.WorkPairs, Who: k.Name, Size: size, Figure: "pairs/s"}
			if rate := book.Values(key); len(rate) > 0 {
				l.points = append(l.points, point{float64(size), measure.Median(rate)})
			}
		}
		if len(l.points) > 0 {
			c.lines = append(c.lines, l)
		}
	}
	return c.svg()
}

// waitersDrawn is the contest of which the waiting times are drawn.
const waitersDrawn = 64

// Waits draws which share of the calls had waited for how long at most.
func Waits(book *measure.Book, all []contestant.Contestant) string {
	c := chart{
		title: "Waiting for one name, 64 waiters, 2 ms hold",
		x: axis{
			label: "milliseconds waited at most", low: 0.1, top: 3000, ticks: []float64{0.1, 1, 10, 100, 1000}, text: plain,
		},
		y: axis{label: "share of the lock calls", top: 1, ticks: []float64{0, 0.25, 0.5, 0.75, 1}, text: plain, linear: true},
	}
	for i, k := range all {
		l := line{name: k.Name, colour: i}
		for _, q := range workload.WaitQuantiles {
			key := measure.Key{
				Work: workload.WorkContest, Who: k.Name, Size: waitersDrawn, Figure: workload.WaitFigure(q),
			}
			if us := book.Values(key); len(us) > 0 {
				l.points = append(l.points, point{measure.Median(us) / 1000, q})
			}
		}
		if len(l.points) > 0 {
			c.lines = append(c.lines, l)
		}
	}
	return c.svg()
}
