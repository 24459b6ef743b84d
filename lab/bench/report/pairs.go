package report

import (
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/lab/bench/contestant"
	"github.com/holdfast-go/holdfast/lab/bench/measure"
	"github.com/holdfast-go/holdfast/lab/bench/shape"
	"github.com/holdfast-go/holdfast/lab/bench/workload"
)

const (
	bareName      = "bare scripts"
	pipelinedName = "bare scripts, autopipeline"
	ourName       = "holdfast Mutex"
	redislockName = "redislock"
)

// pairs is the table of uncontended locks. The spread is the throughput's over the rounds. The fastest tenth of the
// rounds are told of a lone goroutine only: with many of them, there are not enough rounds.
func pairs(book *measure.Book, all []contestant.Contestant) string {
	var b strings.Builder
	for _, size := range workload.PairSizes {
		key := func(who, figure string) measure.Key {
			return measure.Key{Work: workload.WorkPairs, Who: who, Size: size, Figure: figure}
		}
		rows := [][]string{{
			fmt.Sprintf("goroutines: %d", size), "pairs/s", "of " + shape.RedissonName, "of the bare scripts", "of the best peer",
			"spread", "p50, p99 µs", "allocations, bytes", "commands", "server µs",
		}}
		if size == 1 {
			rows[0] = append(rows[0], "fastest tenth: pairs/s, of "+shape.RedissonName)
		}
		redisson, bare := book.Values(key(shape.RedissonName, "pairs/s")), book.Values(key(bareName, "pairs/s"))
		peers := bestPeer(book, all, key("", "pairs/s"))
		for _, c := range all {
			rate := book.Values(key(c.Name, "pairs/s"))
			if len(rate) == 0 {
				continue
			}
			median := func(figure string) string { return Number(book.Median(key(c.Name, figure))) }
			rows = append(rows, []string{
				c.Name, median("pairs/s"), roundwise(rate, redisson), roundwise(rate, bare), roundwise(rate, peers), spread(rate),
				median("p50 us") + ", " + median("p99 us"), median("allocs") + ", " + median("bytes"),
				median("commands"), median("server us"),
			})
			if size == 1 {
				fastest := measure.FastestRate(rate)
				last := len(rows) - 1
				rows[last] = append(rows[last], Number(fastest)+", "+Number(fastest/measure.FastestRate(redisson)))
			}
		}
		b.WriteString(Table(rows) + "\n")
	}
	return b.String()
}

// roundwise is the median of the ratios of the rounds.
func roundwise(of, by []float64) string { return Number(measure.Median(measure.Ratios(of, by))) }

// bestPeer returns the rounds of the peer whose median is the best. The best of each round would be whom chance had
// favoured in it.
func bestPeer(book *measure.Book, all []contestant.Contestant, k measure.Key) (best []float64) {
	for _, c := range all {
		k.Who = c.Name
		if values := book.Values(k); isPeer(c) && (best == nil || measure.Median(values) > measure.Median(best)) {
			best = values
		}
	}
	return best
}

func isPeer(c contestant.Contestant) bool { return !c.Limit && c.Family != "holdfast" }

// spread is the range of the middle half of the rounds around their median, in percent.
func spread(values []float64) string {
	m := measure.Median(values)
	if len(values) < 2 || m == 0 {
		return "–"
	}
	return fmt.Sprintf("%+.0f … %+.0f%%", 100*(measure.Quantile(values, 0.25)/m-1), 100*(measure.Quantile(values, 0.75)/m-1))
}
