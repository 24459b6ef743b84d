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
		text += pairs(book, all)
	}
	return text
}
