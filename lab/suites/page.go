package suites

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// A Report is a suite with all of its guards.
type Report struct {
	Copy   *Copy
	Rows   []Row
	Reason map[int]int // how often each of the suite's Accepted was met
}

// Row is a suite with a guard, and what its guards have counted.
type Row struct {
	Checked
	Runs, Refused int
}

// Write writes the page of a whole run.
func Write(w io.Writer, where string, reports []Report) error {
	var page strings.Builder
	fmt.Fprintf(&page, `# Suites of other projects

The tests of these modules pass with a guard of holdfast on each route, server, handler or job, but for the differences below.
`+"`make -C lab suites`"+` writes this page. Measured %s.

Each module is copied at its version, and gets one call at the place where all routes are registered, as a user's `+"`Use(guard)`"+` would
do. Each request, task or run has a key of its own, so the guards run and record, and should refuse none. Of HTTP, a guard is in front of
all middlewares of the route, or innermost: right in front of the handler. The same command runs [Connect's conformance tests of grpc-go and
Connect](../RESULTS.md#conformance-of-connect-and-grpc), which also compare what guards replay.

| suite | version | guard | tests | pass without | pass with | guarded runs | refused | differences |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
`, where)
	for _, r := range reports {
		for _, row := range r.Rows {
			fmt.Fprintf(&page, "| %s | %s | %s | %d | %d | %d | %d | %d | %d |\n", r.Copy.Suite.Name, r.Copy.Version, row.Guard,
				len(row.Without.Outcomes), row.Without.Count(Passed), row.With.Count(Passed), row.Runs, row.Refused,
				len(row.Expected)+len(row.Failed))
		}
	}
	page.WriteString("\n\"tests\" counts their parts too. \"differences\" counts a test once: its parts, if these differ.\n\n## Differences\n\n" +
		"| suite | test | guard | why |\n| --- | --- | --- | --- |\n")
	for _, r := range reports {
		for i, a := range r.Copy.Suite.Accepted {
			guards := "all"
			if len(a.Guards) > 0 {
				guards = strings.Join(a.Guards, "; ")
			}
			if r.Reason[i] > 0 {
				fmt.Fprintf(&page, "| %s | `%s` | %s | %s |\n", r.Copy.Suite.Name, name(Test{a.Package, a.Test}), guards, a.Reason)
			}
		}
		for _, row := range r.Rows {
			for _, d := range row.Failed {
				fmt.Fprintf(&page, "| %s | `%s` | %s | **unexpected** |\n", r.Copy.Suite.Name, name(d.Test), row.Guard)
			}
		}
	}
	page.WriteString(unsteady(reports))
	_, err := io.WriteString(w, page.String())
	return err
}

// name returns the name of a test on the page.
func name(t Test) string {
	if t.Package == "." {
		return t.Name
	}
	return t.Package + ": " + t.Name
}

func unsteady(reports []Report) string {
	var all []string
	for _, r := range reports {
		for _, row := range r.Rows {
			for _, d := range row.Unsteady {
				all = append(all, fmt.Sprintf("* %s with %s: `%s`\n", r.Copy.Suite.Name, row.Guard, name(d.Test)))
			}
		}
	}
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	return "\n## Unsteady\n\nThese failed at first and passed with the same guard when they ran again. Most of them wait for some milliseconds, and then expect" +
		"\nsomething to have happened:\n\n" + strings.Join(all, "")
}

// NewReport returns the report of a suite, whose rows are complete.
func NewReport(c *Copy, rows []Row) Report {
	r := Report{c, rows, map[int]int{}}
	for _, row := range rows {
		for _, d := range row.Expected {
			if i, ok := c.Suite.accepts(d); ok {
				r.Reason[i]++
			}
		}
	}
	return r
}

// Stale returns the differences that are accepted and were not met.
func (r Report) Stale() (stale []Accepted) {
	for i, a := range r.Copy.Suite.Accepted {
		if r.Reason[i] == 0 {
			stale = append(stale, a)
		}
	}
	return stale
}
