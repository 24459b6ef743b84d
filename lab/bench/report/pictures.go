package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/svg"
	"github.com/holdfast-go/holdfast/lab/bench/measure"
	"github.com/holdfast-go/holdfast/lab/bench/workload"
)

// The files of the pictures, beside the page.
const (
	ThroughputFile = "throughput.svg"
	WaitsFile      = "waits.svg"
)

// drawn are the contestants in the pictures, in this order: what a reader chooses between. The tables have all of them.
var drawn = []string{"holdfast Mutex", "rueidislock, 1 key", "redislock", "go-zero", "redsync"}

// goroutinesDrawn is the number of goroutines whose throughput is drawn.
const goroutinesDrawn = 64

// Throughput draws pairs per second as bars.
func Throughput(book *measure.Book) string {
	const left, right, step = 170.0, 430.0, 38
	rates, most := make([]float64, len(drawn)), 1.0
	for i, name := range drawn {
		key := measure.Key{Work: workload.WorkPairs, Who: name, Size: goroutinesDrawn, Figure: "pairs/s"}
		if rounds := book.Values(key); len(rounds) > 0 {
			rates[i] = measure.Median(rounds)
		}
		most = max(most, rates[i])
	}
	title := fmt.Sprintf("Lock and unlock, pairs a second, %d goroutines", goroutinesDrawn)
	var description []string
	for i, name := range drawn {
		description = append(description, name+" "+Number(rates[i]))
	}
	p := svg.New(70+step*float64(len(drawn)), title, strings.Join(description, "; "))
	p.Heading(20, 30, title)
	for i, name := range drawn {
		tone, y := svg.Plain, 48+step*float64(i)
		if i == 0 {
			tone = svg.Held
		}
		p.Text(left-10, y+19, svg.End, name)
		p.Rect(left, y, math.Round(max(rates[i]/most*(right-left), 1)), 28, tone)
		p.Text(left+math.Round(rates[i]/most*(right-left))+8, y+19, svg.Start, Number(rates[i]))
	}
	p.Note(20, 62+step*float64(len(drawn)), svg.Start, "each goroutine locks a name of its own")
	return p.String()
}

// waitersDrawn is the contest of which the waiting times are drawn.
const waitersDrawn = 64

// waitsAlt is the text alternative of the waiting times.
const waitsAlt = "How long calls wait for one lock that 64 want: with holdfast nearly all for 200 ms, " +
	"with the others many for less, and some for two seconds"

// Waits draws which share of the calls had waited for how long at most.
func Waits(book *measure.Book) string {
	c := chart{
		title: "Waiting for one name, 64 waiters, 2 ms hold",
		x: axis{
			label: "milliseconds waited at most", low: 0.1, top: 3000, ticks: []float64{0.1, 1, 10, 100, 1000}, text: plain,
		},
		y: axis{label: "share of the lock calls", top: 1, ticks: []float64{0, 0.25, 0.5, 0.75, 1}, text: plain, linear: true},
	}
	for i, name := range slices.Insert(slices.Clone(drawn), 1, "holdfast Fair") {
		l := line{name: name, colour: i}
		for _, q := range workload.WaitQuantiles {
			key := measure.Key{
				Work: workload.WorkContest, Who: name, Size: waitersDrawn, Figure: workload.WaitFigure(q),
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
