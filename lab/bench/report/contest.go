package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/lab/bench/contestant"
	"github.com/holdfast-go/holdfast/lab/bench/measure"
	"github.com/holdfast-go/holdfast/lab/bench/workload"
)

// contest is the table of one name that many want.
func contest(book *measure.Book, all []contestant.Contestant) string {
	var b strings.Builder
	for _, size := range workload.ContestSizes {
		key := func(who, figure string) measure.Key {
			return measure.Key{Work: workload.WorkContest, Who: who, Size: size, Figure: figure}
		}
		floor := book.Values(key(workload.Floor, "handoff p50 us"))
		rows := [][]string{{
			fmt.Sprintf("waiters: %d", size), "grants/s", "handoff p50, p99 µs", "of the bare message and script", "spread",
			"lock in use", "commands per grant", "to another holder", "Jain's index", "wait p50, p99, longest ms",
		}}
		for _, c := range all {
			handoffs := book.Values(key(c.Name, "handoff p50 us"))
			if len(handoffs) == 0 {
				continue
			}
			median := func(figure string) float64 { return book.Median(key(c.Name, figure)) }
			wait := func(q float64) string { return Number(median(workload.WaitFigure(q)) / 1000) }
			rows = append(rows, []string{
				c.Name, Number(median("grants/s")), Number(median("handoff p50 us")) + ", " + Number(median("handoff p99 us")),
				Number(measure.Median(measure.Ratios(handoffs, floor))), spread(handoffs),
				fmt.Sprintf("%.0f%%", 100*median("utilisation")), Number(median("commands")),
				fmt.Sprintf("%.0f%%", 100*median("between")), Number(median("jain")),
				wait(0.5) + ", " + wait(0.99) + ", " + wait(1),
			})
		}
		message, script := book.Median(key(workload.Floor, "delivery us")), book.Median(key(workload.Floor, "script us"))
		hold := measure.Microseconds([]time.Duration{workload.HoldFor})[0]
		b.WriteString(Table(rows))
		fmt.Fprintf(&b, "\nBare: %s µs for a message, %s µs for a script. With no more than those between two holders, the lock "+
			"would be\nin use for %.0f%% of the time.\n\n", Number(message), Number(script), 100*hold/(hold+message+script))
	}
	return b.String()
}

// barging is the table of a name that nobody holds for a long time, in one of two workloads.
func barging(book *measure.Book, work string, all []contestant.Contestant) string {
	rows := [][]string{{"64 waiters, held for no time", "grants/s", "to another than the last holder", "Jain's index"}}
	for _, c := range all {
		key := func(figure string) measure.Key {
			return measure.Key{Work: work, Who: c.Name, Size: 64, Figure: figure}
		}
		if len(book.Values(key("jain"))) == 0 {
			continue
		}
		rows = append(rows, []string{
			c.Name, Number(book.Median(key("grants/s"))), fmt.Sprintf("%.0f%%", 100*book.Median(key("between"))),
			Number(book.Median(key("jain"))),
		})
	}
	return Table(rows) + "\n"
}
