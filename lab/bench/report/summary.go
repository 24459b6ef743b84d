package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/lab/bench/contestant"
	"github.com/holdfast-go/holdfast/lab/bench/measure"
	"github.com/holdfast-go/holdfast/lab/bench/workload"
)

const fairName = "holdfast Fair"

// waitersSummed is the contest of which the summary speaks.
const waitersSummed = 64

// Summary returns what the page says, in some lines of Markdown and a picture. It leaves out what was not measured.
func Summary(book *measure.Book, all []contestant.Contestant) string {
	var b strings.Builder
	for _, size := range workload.PairSizes {
		b.WriteString(pairsSummary(book, all, size))
	}
	b.WriteString(contestSummary(book, all))
	b.WriteString(scaleSummary(book))
	b.WriteString(goalsSummary(book, all))
	b.WriteString("* **The faster libraries do less for a lock:** [what the peers do not do](#what-the-peers-do-not-do).\n")
	fmt.Fprintf(&b, "\n![Pairs of lock and unlock a second, by library and number of goroutines](%s)\n", ThroughputFile)
	return b.String()
}

// pairsSummary says how fast free locks are, and which peers are faster.
func pairsSummary(book *measure.Book, all []contestant.Contestant, size int) string {
	key := measure.Key{Work: workload.WorkPairs, Who: ourName, Size: size, Figure: "pairs/s"}
	if len(book.Values(key)) == 0 {
		return ""
	}
	goroutines := "goroutines"
	if size == 1 {
		goroutines = "goroutine"
	}
	return fmt.Sprintf("* **Free locks, %d %s:** a `Mutex` does %s pairs of lock and unlock a second. Faster: %s.\n",
		size, goroutines, Number(book.Median(key)), faster(book, all, key, nil))
}

// faster lists the peers with a greater median than key's, the fastest first. More, if it is not nil, says
// something about each.
func faster(book *measure.Book, all []contestant.Contestant, key measure.Key, more func(who string) string) string {
	type peer struct {
		name   string
		figure float64
	}
	ours := book.Median(key)
	var peers []peer
	for _, c := range all {
		key.Who = c.Name
		if theirs := book.Median(key); isPeer(c) && theirs > ours {
			peers = append(peers, peer{c.Name, theirs})
		}
	}
	slices.SortFunc(peers, func(x, y peer) int { return cmp.Compare(y.figure, x.figure) })
	var texts []string
	for _, p := range peers {
		detail := ""
		if more != nil {
			detail = ", " + more(p.name)
		}
		texts = append(texts, fmt.Sprintf("%s (%s%s)", p.name, Number(p.figure), detail))
	}
	return cmp.Or(strings.Join(texts, "; "), "none")
}

// contestSummary says how long waiters of one lock wait, and what that costs in grants.
func contestSummary(book *measure.Book, all []contestant.Contestant) string {
	key := func(who, figure string) measure.Key {
		return measure.Key{Work: workload.WorkContest, Who: who, Size: waitersSummed, Figure: figure}
	}
	if len(book.Values(key(ourName, "grants/s"))) == 0 {
		return ""
	}
	longest := func(who string) float64 { return book.Median(key(who, workload.WaitFigure(1))) / 1000 }
	var least, most float64
	for _, c := range all {
		if isPeer(c) && len(book.Values(key(c.Name, "grants/s"))) > 0 {
			if wait := longest(c.Name); least == 0 || wait < least {
				least = wait
			}
			most = max(most, longest(c.Name))
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "* **One lock, %d waiters, held for 2 ms:** the longest wait is %s ms with `Mutex`, %s ms with `Fair`, "+
		"and %s to %s ms with the peers.\n",
		waitersSummed, Number(longest(ourName)), Number(longest(fairName)), Number(least), Number(most))
	others := faster(book, all, key(ourName, "grants/s"), func(who string) string {
		return fmt.Sprintf("%.0f%% to another holder", 100*book.Median(key(who, "between")))
	})
	fmt.Fprintf(&b, "* **The same, grants a second:** %s with `Mutex`, of which %.0f%% go to another holder. More: %s.\n",
		Number(book.Median(key(ourName, "grants/s"))), 100*book.Median(key(ourName, "between")), others)
	return b.String()
}

// scaleSummary says what many leases and the HTTP guard cost.
func scaleSummary(book *measure.Book) string {
	var b strings.Builder
	leases := many(book, workload.WorkLeases, ourName)
	lease := func(figure string) string {
		return Number(book.Median(measure.Key{Work: workload.WorkLeases, Who: ourName, Size: leases, Figure: figure}))
	}
	if leases > 0 {
		fmt.Fprintf(&b, "* **%s leases in one process:** %s goroutines renew them with %s of a core. %s were lost.\n",
			Number(float64(leases)), lease("goroutines"), lease("cpu"), lease("lost"))
	}
	once := measure.Key{Work: workload.WorkOnce, Who: workload.OnceName, Size: 1, Figure: "commands"}
	if len(book.Values(once)) > 0 {
		commands := Number(book.Median(once))
		once.Figure = "p50 us"
		fmt.Fprintf(&b, "* **An HTTP request through `httplock.Once`:** %s commands. The median request takes %s µs.\n",
			commands, Number(book.Median(once)))
	}
	return b.String()
}

// goalsSummary says how many goals were missed.
func goalsSummary(book *measure.Book, all []contestant.Contestant) string {
	missed, measured := 0, 0
	for _, g := range allGoals(book, all) {
		switch g.verdict() {
		case "no":
			missed, measured = missed+1, measured+1
		case "yes":
			measured++
		}
	}
	return fmt.Sprintf("* **Goals:** %d of %d are missed. The table below lists them.\n", missed, measured)
}
