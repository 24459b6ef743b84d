package report

import (
	"github.com/holdfast-go/holdfast/bench/contestant"
	"github.com/holdfast-go/holdfast/bench/measure"
	"github.com/holdfast-go/holdfast/bench/workload"
)

// Tables returns what was measured in Markdown.
func Tables(book *measure.Book, all []contestant.Contestant) string {
	var text string
	if book.Has(workload.WorkPairs) {
		text += "### Free names\n\n" + pairs(book, all)
	}
	if book.Has(workload.WorkContest) {
		text += "### One name that many want\n\n" + contest(book, all)
	}
	if book.Has(workload.WorkBarging) {
		text += "### Asking again at once\n\n" + barging(book, all)
	}
	return text
}
