package docs_test

import (
	"fmt"
	"go/types"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/markdown"
)

// testsPage is the page with the tests of each guarantee and each symbol.
const testsPage = "docs/tests.md"

// TestTestsPage compares docs/tests.md with the guarantees, with what the public packages export, and with the tests.
func TestTestsPage(t *testing.T) {
	if underRace {
		t.Skip("the race detector makes it four times as slow: make test runs it without")
	}
	if os.Getenv("GOWORK") == "off" {
		t.Skip("without the workspace, packages of other modules are not found: make test runs it in it")
	}
	t.Parallel()
	page, err := markdown.Read(root, testsPage)
	if err != nil {
		t.Fatal(err)
	}
	rows := parseTests(page)
	c := newTestsCheck(t, rows)
	if mistakes := c.mistakes(rows); len(mistakes) > 0 {
		t.Fatal(strings.Join(mistakes, "\n"))
	}
	c.findMistakes(t, rows)
}

// findMistakes shows that the check can fail: it changes one row after the other, and wants a mistake for each.
func (c *testsCheck) findMistakes(t *testing.T, rows []testsRow) {
	t.Helper()
	guarantee := 0
	symbol := slices.IndexFunc(rows, func(row testsRow) bool { return slices.Contains(row.subjects, "Lease.Unlock") })
	with := func(at int, change func(row *testsRow)) []testsRow {
		changed := slices.Clone(rows)
		change(&changed[at])
		return changed
	}
	tests := func(names ...string) func(*testsRow) { return func(row *testsRow) { row.tests = names } }
	for want, changed := range map[string][]testsRow{
		"lacks guarantee 1. ":                    rows[1:],
		"1. Inclusion is no guarantee":           with(guarantee, func(row *testsRow) { row.subjects = []string{"1. Inclusion"} }),
		"lacks Lease.Unlock":                     slices.Delete(slices.Clone(rows), symbol, symbol+1),
		"Lease.Unlock has two rows":              append(slices.Clone(rows), rows[symbol]),
		"Lease.Unlok does not exist":             with(symbol, func(row *testsRow) { row.subjects = []string{"Lease.Unlok"} }),
		"lacks the package locktest":             slices.DeleteFunc(slices.Clone(rows), func(row testsRow) bool { return row.section == "locktest" }),
		"Lease.Unlock has 0 tests":               with(symbol, tests()),
		"Lease.Unlock has 4 tests":               with(symbol, tests("TestA", "TestB", "TestC", "TestD")),
		"no package cor":                         with(symbol, tests("cor.TestConformance")),
		"core has no test TestConform":           with(symbol, tests("TestConform")),
		"TestConformance/*/No has no case No":    with(symbol, tests("TestConformance/*/No")),
		"TestDependencies does not call":         with(symbol, tests("TestDependencies")),
		"locktest.TestAddr does not call":        with(symbol, tests("locktest.TestAddr")),
		"middleware has no test TestConformance": with(guarantee, tests("middleware.TestConformance")),
		"core.TestConformance/No has no case No": with(guarantee, tests("core.TestConformance/No")),
	} {
		if found := c.mistakes(changed); !slices.ContainsFunc(found, func(m string) bool { return strings.Contains(m, want) }) {
			t.Errorf("found %q, want %q", found, want)
		}
	}
}

// A testsRow is one row of the page.
type testsRow struct {
	line     int
	section  string // the heading of the second level above it
	subjects []string
	tests    []string
}

// testIn returns the directory and the name of a test of the row.
func (row testsRow) testIn(test string) (dir, name string) {
	if dir, name, qualified := strings.Cut(test, "."); qualified {
		return dir, name
	}
	return row.section, test
}

// parseTests returns the rows of the tables of a page. Guarantees have no backquotes, symbols and tests do.
func parseTests(page markdown.Page) (rows []testsRow) {
	quoted := regexp.MustCompile("`([^`]+)`")
	_, prose := page.Split()
	section := ""
	for i, line := range prose {
		if title, level := markdown.Heading(line); level == 2 {
			section = title
		}
		cells := strings.Split(line, "|")
		if len(cells) != 4 || strings.HasPrefix(line, "| ---") || i+1 < len(prose) && strings.HasPrefix(prose[i+1], "| ---") {
			continue
		}
		row := testsRow{line: i + 1, section: section}
		for _, found := range quoted.FindAllStringSubmatch(cells[1], -1) {
			row.subjects = append(row.subjects, found[1])
		}
		if row.subjects == nil {
			row.subjects = []string{strings.TrimSpace(cells[1])}
		}
		for _, found := range quoted.FindAllStringSubmatch(cells[2], -1) {
			row.tests = append(row.tests, found[1])
		}
		rows = append(rows, row)
	}
	return rows
}

// A testsCheck knows what the page must have.
type testsCheck struct {
	guarantees []string
	packages   map[string]*universe              // by directory
	symbols    map[string]map[string]*types.Func // by directory
	reaches    map[[3]string]reach               // by directory, test, and import path of the symbols; what reachOf has found
}

// newTestsCheck reads the guarantees, the public packages, and the other packages whose tests are in rows.
func newTestsCheck(t *testing.T, rows []testsRow) *testsCheck {
	t.Helper()
	c := &testsCheck{
		packages: make(map[string]*universe),
		symbols:  make(map[string]map[string]*types.Func),
		reaches:  make(map[[3]string]reach),
	}
	promise := regexp.MustCompile(`(?m)^(\d+\. )\*\*(.+?)\.\*\*`)
	for _, found := range promise.FindAllStringSubmatch(readFile(t, "docs/guarantees.md"), -1) {
		c.guarantees = append(c.guarantees, found[1]+found[2])
	}
	public := publicPackages(t)
	if len(c.guarantees) < 10 || len(public) < 7 {
		t.Fatalf("found the guarantees %q and the packages %q", c.guarantees, public)
	}
	dirs := slices.Clone(public)
	for _, row := range rows {
		for _, test := range row.tests {
			dir, _ := row.testIn(test)
			if slices.Contains(dirs, dir) {
				continue
			}
			if _, err := readPackage(".", dir); err == nil {
				dirs = append(dirs, dir)
			}
		}
	}
	s := readSources(t, dirs)
	for _, dir := range dirs {
		c.packages[dir] = s.check(t, dir)
		if slices.Contains(public, dir) {
			c.symbols[dir] = c.packages[dir].symbols()
		}
	}
	return c
}

// mistakes returns a line for each mistake in the rows.
func (c *testsCheck) mistakes(rows []testsRow) (found []string) {
	seen := make(map[string]bool)
	for _, row := range rows {
		for _, subject := range row.subjects {
			for _, mistake := range c.rowMistakes(row, subject) {
				found = append(found, fmt.Sprintf("%s:%d: %s", testsPage, row.line, mistake))
			}
			if at := row.section + " " + subject; seen[at] {
				found = append(found, fmt.Sprintf("%s:%d: %s has two rows", testsPage, row.line, subject))
			} else {
				seen[at] = true
			}
		}
		seen[row.section] = true
	}
	for _, guarantee := range c.guarantees {
		if !seen["Guarantees "+guarantee] {
			found = append(found, testsPage+" lacks guarantee "+guarantee)
		}
	}
	for dir, symbols := range c.symbols {
		if !seen[dir] {
			found = append(found, testsPage+" lacks the package "+dir)
			continue
		}
		for symbol := range symbols {
			if !seen[dir+" "+symbol] {
				found = append(found, fmt.Sprintf("%s: %s lacks %s", testsPage, dir, symbol))
			}
		}
	}
	return found
}

// rowMistakes returns what is wrong with one subject of a row.
func (c *testsCheck) rowMistakes(row testsRow, subject string) (found []string) {
	var symbol *types.Func
	if row.section == "Guarantees" {
		if !slices.Contains(c.guarantees, subject) {
			return []string{subject + " is no guarantee"}
		}
	} else if symbol = c.symbols[row.section][subject]; symbol == nil {
		return []string{subject + " does not exist in " + row.section}
	}
	if n := len(row.tests); n < 1 || n > 3 {
		found = append(found, fmt.Sprintf("%s has %d tests, want one to three", subject, n))
	}
	for _, test := range row.tests {
		if mistake := c.testMistake(row, test, subject, symbol); mistake != "" {
			found = append(found, mistake)
		}
	}
	return found
}

// testMistake returns what is wrong with a test of a row. The symbol is nil for a guarantee.
func (c *testsCheck) testMistake(row testsRow, test, subject string, symbol *types.Func) string {
	dir, name := row.testIn(test)
	u := c.packages[dir]
	if u == nil {
		return "no package " + dir
	}
	but := path.Join(modulePath, row.section)
	at := [3]string{dir, name, but}
	if c.reaches[at] == nil {
		r, missing := u.reachOf(name, but)
		if isTest(missing) {
			return fmt.Sprintf("%s has no test %s", dir, missing)
		} else if missing != "" {
			return fmt.Sprintf("%s has no case %s", test, missing)
		}
		c.reaches[at] = r
	}
	if symbol == nil || implicit(symbol) || c.reaches[at].has(u.own(symbol)) {
		return ""
	}
	return fmt.Sprintf("%s does not call %s", test, subject)
}
