package report

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/holdfast-go/holdfast/lab/bench/contestant"
	"github.com/holdfast-go/holdfast/lab/bench/measure"
	"github.com/holdfast-go/holdfast/lab/bench/workload"
)

const goRedis = "github.com/redis/go-redis/v9"

// Text returns all that was measured in Markdown. The pictures lie beside the page.
func Text(book *measure.Book, all []contestant.Contestant, machine string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s, with go-redis%s.\n%s\n\n%s\n", machine, version(goRedis), method, goals(book, all))
	if book.Has(workload.WorkPairs) {
		fmt.Fprintf(&b, "### Free names\n\n%s\n\n%s", pairsText, pairs(book, all))
	}
	if book.Has(workload.WorkContest) {
		fmt.Fprintf(&b, "### One name that many want\n\n%s\n\n![%s](%s)\n\n%s", contestText, waitsAlt, WaitsFile, contest(book, all))
	}
	if book.Has(workload.WorkBarging) {
		b.WriteString("### Asking again at once\n\n" + bargingText + "\n\n" + barging(book, workload.WorkBarging, all))
	}
	if book.Has(workload.WorkInside) {
		b.WriteString(insideText + "\n\n" + barging(book, workload.WorkInside, all))
	}
	fmt.Fprintf(&b, "### Very many at once, and the HTTP guard\n\n%s\n\n%s\n", scaleText, scale(book))
	b.WriteString("### What the peers do not do\n\n" + lacks(all))
	return b.String()
}

// version returns the version of a module in this program after a blank, or nothing if it is unknown.
func version(module string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, dep := range info.Deps {
		if dep.Path == module {
			return " " + dep.Version
		}
	}
	return ""
}

// lacks says once for each peer what its figures do not pay for.
func lacks(all []contestant.Contestant) string {
	var b strings.Builder
	told := make(map[string]bool)
	for _, c := range all {
		if c.Lacks != "" && !told[c.Family] {
			told[c.Family] = true
			fmt.Fprintf(&b, "* %s%s: %s.\n", c.Family, version(c.Module), c.Lacks)
		}
	}
	return b.String()
}
