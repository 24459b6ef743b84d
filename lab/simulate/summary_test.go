//go:build holdfast_simulation

package simulate_test

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/lab/faults/check"
	"github.com/holdfast-go/holdfast/lab/faults/linear"
	"github.com/holdfast-go/holdfast/lab/gitcommit"
)

// summary adds up the reports of all simulations, which may end at the same time.
type summary struct {
	mu     sync.Mutex
	seeds  map[string]int           // by the name of the kind
	kinds  map[string]*check.Report // the same
	all    *check.Report
	models *linear.Report
}

func newSummary() *summary {
	return &summary{
		seeds: make(map[string]int), kinds: make(map[string]*check.Report), all: check.NewReport(), models: linear.NewReport(),
	}
}

func (s *summary) add(k kind, r *check.Report, judgement *linear.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kinds[k.name] == nil {
		s.kinds[k.name] = check.NewReport()
	}
	s.seeds[k.name]++
	s.kinds[k.name].Add(r)
	s.all.Add(r)
	s.models.Add(judgement)
}

// print writes how much of each kind was run, and then all that was found.
func (s *summary) print(out io.Writer) {
	s.all.Topology = "all simulations"
	s.all.Print(out)
	fmt.Fprintf(out, "Commit %s.\n\n", gitcommit.Head())
	fmt.Fprint(out, "| world | seeds | time | faults | grants | fenced writes (refused) | stale writes without a fence | "+
		"keys of Once | unavoidable | violations |\n|---|---|---|---|---|---|---|---|---|---|\n")
	total, printed := 0, make(map[string]bool)
	for _, k := range kinds {
		if r := s.kinds[k.name]; r != nil && !printed[k.name] {
			printed[k.name] = true
			row(out, k.name, s.seeds[k.name], r)
			total += s.seeds[k.name]
		}
	}
	row(out, "all", total, s.all)
	s.models.Print(out)
}

func row(out io.Writer, name string, seeds int, r *check.Report) {
	apart := 0
	for _, count := range r.Apart {
		apart += count
	}
	fmt.Fprintf(out, "| %s | %d | %v | %d | %d | %d (%d) | %d | %d | %d | %d |\n", name, seeds, r.Lasted.Round(time.Second),
		r.Injected, r.Grants, r.Writes, r.Refused, r.Stale, r.OnceKeys, apart, len(r.Violations))
}
