package round_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/lab/faults/check"
	"github.com/holdfast-go/holdfast/lab/faults/linear"
	"github.com/holdfast-go/holdfast/lab/gitcommit"
)

// summary adds up the reports of all rounds.
type summary struct {
	mu     sync.Mutex               // rounds may end at the same time
	rounds map[string]*check.Report // by topology
	count  map[string]int
	all    *check.Report
	models *linear.Report
	seeds  []uint64
}

func newSummary() *summary {
	return &summary{
		rounds: make(map[string]*check.Report), count: make(map[string]int), all: check.NewReport(),
		models: linear.NewReport(),
	}
}

func (s *summary) add(seed uint64, r *check.Report, judgement *linear.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rounds[r.Topology] == nil {
		s.rounds[r.Topology] = check.NewReport()
	}
	s.count[r.Topology]++
	s.seeds = append(s.seeds, seed)
	s.rounds[r.Topology].Add(r)
	s.all.Add(r)
	s.models.Add(judgement)
}

// write writes the tables of RESULTS.md.
func (s *summary) write(t *testing.T, path string) {
	t.Helper()
	if *total > 0 && !*limits && !*models && s.all.Stale == 0 {
		t.Error("inconclusive: without a fence there was no stale write either")
	}
	if s.all.Stale > 0 && s.models.Baseline.Illegal+s.models.Baseline.Unknown == 0 {
		t.Error("the model of the register allows what the unfenced side has accepted")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Commit %s.\n\n", gitcommit.Head())
	fmt.Fprintf(&b, "| topology | rounds | time | faults | grants | fenced writes (refused) | stale writes without a fence "+
		"| keys of Once | unavoidable | violations |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for _, name := range append(slices.Sorted(maps.Keys(s.rounds)), "all") {
		r, n := s.rounds[name], s.count[name]
		if name == "all" {
			r, n = s.all, len(s.seeds)
		}
		apart := 0
		for _, count := range r.Apart {
			apart += count
		}
		fmt.Fprintf(&b, "| %s | %d | %v | %d | %d | %d (%d) | %d | %d | %d | %d |\n", name, n, r.Lasted.Round(time.Second),
			r.Injected, r.Grants, r.Writes, r.Refused, r.Stale, r.OnceKeys, apart, len(r.Violations))
	}
	s.writeSubjects(&b)
	fmt.Fprintf(&b, "\n| row | fault | times |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(s.all.Faults)) {
		fmt.Fprintf(&b, "| %s | %s | %d |\n", strings.TrimSpace(name[:2]), name[3:], s.all.Faults[name])
	}
	fmt.Fprintf(&b, "\n| unavoidable | times |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(s.all.Apart)) {
		fmt.Fprintf(&b, "| %s | %d |\n", name, s.all.Apart[name])
	}
	fmt.Fprintf(&b, "\n| measured | |\n|---|---|\n| a lock freed after a heal | %v |\n| calls beyond their deadline | %v |\n"+
		"| losses told late | %v |\n| seeds | %d to %d |\n\n",
		s.all.Freed, s.all.Overdue, s.all.Told, slices.Min(s.seeds), slices.Max(s.seeds))
	s.models.Print(&b)
	t.Logf("\n%s", b.String())
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Error(err)
	}
}

// writeSubjects writes how often what was granted or begun on which topology.
func (s *summary) writeSubjects(b *strings.Builder) {
	topologies := slices.Sorted(maps.Keys(s.rounds))
	fmt.Fprintf(b, "\n| granted or begun | %s | all |\n|---|%s---|\n", strings.Join(topologies, " | "), strings.Repeat("---|", len(topologies)))
	for _, subject := range slices.Sorted(maps.Keys(s.all.Subjects)) {
		fmt.Fprintf(b, "| %s |", subject)
		for _, topology := range topologies {
			fmt.Fprintf(b, " %d |", s.rounds[topology].Subjects[subject])
		}
		fmt.Fprintf(b, " %d |\n", s.all.Subjects[subject])
	}
}
