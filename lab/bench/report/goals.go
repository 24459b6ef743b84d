package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/holdfast-go/holdfast/lab/bench/contestant"
	"github.com/holdfast-go/holdfast/lab/bench/measure"
	"github.com/holdfast-go/holdfast/lab/bench/shape"
	"github.com/holdfast-go/holdfast/lab/bench/workload"
)

// goal is a figure that holdfast is to reach, at most or at least.
type goal struct {
	work    string
	limit   float64
	atLeast bool
	reached float64 // NaN: not measured
	unit    string
}

func (g goal) row() []string {
	sign := "≤"
	if g.atLeast {
		sign = "≥"
	}
	return []string{g.work, sign + " " + plain(g.limit) + g.unit, Number(g.reached) + g.unit, g.verdict()}
}

// verdict says whether the goal is met, "–" if it was not measured.
func (g goal) verdict() string {
	switch {
	case math.IsNaN(g.reached):
		return "–"
	case g.atLeast && g.reached >= g.limit, !g.atLeast && g.reached <= g.limit:
		return "yes"
	}
	return "no"
}

// plain writes a limit as one would say it.
func plain(v float64) string {
	if v >= 1000 {
		return thousands(v)
	}
	return fmt.Sprint(v)
}

// goals compares with what a lock is meant to cost; figures are medians over the rounds of one run.
func goals(book *measure.Book, all []contestant.Contestant) string {
	rows := [][]string{{"goal", "limit", "reached", "met"}}
	for _, g := range allGoals(book, all) {
		rows = append(rows, g.row())
	}
	return Table(rows)
}

func allGoals(book *measure.Book, all []contestant.Contestant) []goal {
	return slices.Concat(pairGoals(book, all), contestGoals(book), scaleGoals(book))
}

func pairGoals(book *measure.Book, all []contestant.Contestant) (list []goal) {
	key := func(who string, size int, figure string) measure.Key {
		return measure.Key{Work: workload.WorkPairs, Who: who, Size: size, Figure: figure}
	}
	for _, by := range []struct {
		name, text string
		limit      float64
	}{
		{bareName, "the bare scripts", 1.05}, {shape.RedissonName, "Redisson's shape", 1.05}, {redislockName, "redislock", 1.15},
	} {
		list = append(list, goal{
			work: "lock and unlock by 1 goroutine, time: of " + by.text, limit: by.limit, unit: " ×",
			reached: ratio(book, key(ourName, 1, "p50 us"), key(by.name, 1, "p50 us")),
		})
	}
	for _, size := range []int{64, 512} {
		ours := book.Values(key(ourName, size, "pairs/s"))
		work := fmt.Sprintf("%d goroutines, throughput: ", size)
		against := func(who string, limit float64, by []float64) goal {
			return goal{
				work: work + "of " + who, limit: limit, atLeast: true, unit: " ×", reached: measure.Median(measure.Ratios(ours, by)),
			}
		}
		list = append(list,
			against("the best peer", 1.2, bestPeer(book, all, key("", size, "pairs/s"))),
			against("the best peer on go-redis", 1.8, bestPeer(book, onGoRedis(all), key("", size, "pairs/s"))))
		if size == 512 {
			list = append(list, against("the bare scripts by autopipeline", 0.8, book.Values(key(pipelinedName, size, "pairs/s"))))
		}
	}
	// Ten of a pair, and a share of what runs beside the pairs.
	return append(list, goal{
		work: "allocations of a lock and unlock", limit: 10.5, reached: book.Median(key(ourName, 1, "allocs")),
	})
}

func onGoRedis(all []contestant.Contestant) (some []contestant.Contestant) {
	for _, c := range all {
		if c.Family != "rueidislock" {
			some = append(some, c)
		}
	}
	return some
}

func contestGoals(book *measure.Book) (list []goal) {
	for _, size := range workload.ContestSizes {
		for _, who := range []struct {
			name            string
			commands, inUse float64
		}{{ourName, 4, 0.92}, {fairName, 6, 0.9}} {
			key := func(who, figure string) measure.Key {
				return measure.Key{Work: workload.WorkContest, Who: who, Size: size, Figure: figure}
			}
			work := fmt.Sprintf("%d waiters, %s: ", size, who.name[len("holdfast "):])
			list = append(list,
				goal{
					work: work + "handoff p50, of a bare message and script", limit: 1.5, unit: " ×",
					reached: ratio(book, key(who.name, "handoff p50 us"), key(workload.Floor, "handoff p50 us")),
				},
				goal{
					work: work + "lock in use", limit: who.inUse, atLeast: true, reached: book.Median(key(who.name, "utilisation")),
				},
				goal{work: work + "commands per grant", limit: who.commands, reached: book.Median(key(who.name, "commands"))})
		}
	}
	of := func(work, who, figure string) measure.Key {
		return measure.Key{Work: work, Who: who, Size: 64, Figure: figure}
	}
	return append(list,
		goal{work: "64 waiters of a Mutex: Jain's index", limit: 0.95, atLeast: true, reached: book.Median(of(workload.WorkContest, ourName, "jain"))},
		goal{
			work: "the same: wait, p99", limit: 300, unit: " ms",
			reached: book.Median(of(workload.WorkContest, ourName, workload.WaitFigure(0.99))) / 1000,
		},
		goal{work: "the same, held for no time", limit: 0.95, atLeast: true, reached: book.Median(of(workload.WorkBarging, ourName, "jain"))},
		goal{
			work: "the same in one process, throughput: of rueidislock", limit: 20, atLeast: true, unit: " ×",
			reached: ratio(book, of(workload.WorkInside, ourName, "grants/s"), of(workload.WorkInside, "rueidislock, 1 key", "grants/s")),
		})
}

// ratio is the ratio of two figures, round by round.
func ratio(book *measure.Book, of, by measure.Key) float64 {
	return measure.Median(measure.Ratios(book.Values(of), book.Values(by)))
}
