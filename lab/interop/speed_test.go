//go:build unix

package interop_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/lab/interop"
)

// speedRounds is how often each measurement is made, each time by all sides in turn.
const speedRounds = 7

// work is what is measured.
type work struct {
	what    string
	threads int
	oneName bool
}

var works = []work{
	{"pairs, 1 thread", 1, false},
	{"pairs, 64 threads, a name each", 64, false},
	{"64 threads on one name", 64, true},
}

// TestSpeed measures locks and unlocks of both sides on one server. JVMs are warmed up for three times as long as a
// measurement takes. The table has medians over the rounds; a ratio is the median of those within each round.
func TestSpeed(t *testing.T) {
	if *speed == 0 {
		t.Skip("it takes minutes: make -C lab interop-bench")
	}
	all := versions(t)
	p := single(t)
	sides := []*party{p.golang(t, long)}
	columns := []string{"holdfast"}
	for _, version := range all {
		sides = append(sides, p.java(t, version, long))
		columns = append(columns, "Redisson "+version)
	}
	for _, w := range works {
		for _, side := range sides[1:] {
			w.rate(t, side, 3**speed)
		}
	}
	var table strings.Builder
	fmt.Fprintf(&table, "| work | %s |\n", strings.Join(columns, " | "))
	fmt.Fprintf(&table, "| --- |%s\n", strings.Repeat(" ---: |", len(columns)))
	for _, w := range works {
		rates, ratios := make([][]float64, len(sides)), make([][]float64, len(sides))
		for range speedRounds {
			for i, side := range sides {
				rates[i] = append(rates[i], w.rate(t, side, *speed))
			}
			for i := range sides {
				ratios[i] = append(ratios[i], rates[i][len(rates[i])-1]/rates[0][len(rates[0])-1])
			}
		}
		fmt.Fprintf(&table, "| %s |", w.what)
		for i := range sides {
			fmt.Fprintf(&table, " %.0f/s (%.2f) |", middle(rates[i]), middle(ratios[i]))
		}
		fmt.Fprintln(&table)
	}
	t.Logf("%d rounds of %v each:\n%s", speedRounds, *speed, &table)
}

// rate returns how many pairs of lock and unlock all threads do in a second.
func (w work) rate(t *testing.T, side *party, length time.Duration) (all float64) {
	t.Helper()
	var calls []<-chan interop.Answer
	for i := range w.threads {
		name := side.name
		if !w.oneName {
			name = fmt.Sprintf("%s%d", name, i)
		}
		calls = append(calls, side.begin(fmt.Sprint(i), "pairs", append(lock(name), "for", length.Milliseconds())...))
	}
	for _, answered := range calls {
		a := side.answer(answered, length+within)
		var pairs, micros float64
		if _, err := fmt.Sscan(a.Value, &pairs, &micros); a.Failed || err != nil {
			t.Fatalf("%s: %s", side.name, a.Value)
		}
		all += pairs / micros * 1e6
	}
	return all
}

func middle(values []float64) float64 {
	sorted := slices.SortedFunc(slices.Values(values), cmp.Compare)
	return sorted[len(sorted)/2]
}
