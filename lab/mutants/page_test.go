package mutants_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/lab/mutants"
)

// TestPageListsAllMutants: the table at the end of RESULTS.md has each mutant, in this order.
func TestPageListsAllMutants(t *testing.T) {
	page, err := os.ReadFile("RESULTS.md")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	for _, m := range mutants.All {
		fmt.Fprintf(&table, "| %s | %s | %s | %s |\n", m.Name, m.Why, m.File, foundBy(m.Killer))
	}
	if !strings.HasSuffix(string(page), "| --- | --- | --- | --- |\n"+table.String()) {
		t.Errorf("RESULTS.md needs this table:\n%s", table.String())
	}
}

// foundBy tells which test finds a mutant.
func foundBy(k mutants.Killer) string {
	args := strings.Join(k.Args, " ")
	without := ""
	if strings.Contains(args, "-models") {
		without = ", without the checkers"
	}
	switch k.Package {
	case "lab/simulate":
		return "the simulation" + without
	case "lab/faults/round":
		_, topology, _ := strings.Cut(args, "-only=")
		topology, _, _ = strings.Cut(topology, " ")
		return fmt.Sprintf("a round on the topology %s%s", topology, without)
	}
	return "`" + strings.Join(names(k.Run), "` or `") + "`"
}

// names returns the names of tests in a regular expression, which has them one by one or several ends in parentheses.
func names(run string) []string {
	run = strings.NewReplacer("^", "", "$", "").Replace(run)
	if begin, ends, ok := strings.Cut(run, "("); ok {
		ends, end, _ := strings.Cut(ends, ")")
		head, last := begin[:strings.LastIndex(begin, "|")+1], begin[strings.LastIndex(begin, "|")+1:]
		run = head + last + strings.ReplaceAll(ends, "|", end+"|"+last) + end
	}
	return strings.Split(run, "|")
}
