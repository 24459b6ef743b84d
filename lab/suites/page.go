package suites

import (
	"fmt"
	"slices"
	"strings"
)

// A Report is a suite with all of its guards.
type Report struct {
	Copy *Copy
	Rows []Row
	met  map[int]int // how often each of the suite's Accepted was met
}

// Row is a suite with a guard, and what its guards have counted.
type Row struct {
	Checked
	Runs, Refused int
}

// NewReport returns the report of a suite whose rows are complete.
func NewReport(c *Copy, rows []Row) Report {
	r := Report{c, rows, map[int]int{}}
	for _, row := range rows {
		for _, d := range row.Expected {
			if i, ok := c.Suite.accepts(d); ok {
				r.met[i]++
			}
		}
	}
	return r
}

// Stale returns the differences that are accepted and were not met.
func (r Report) Stale() (stale []Accepted) {
	for i, a := range r.Copy.Suite.Accepted {
		if r.met[i] == 0 {
			stale = append(stale, a)
		}
	}
	return stale
}

const intro = `# Suites of other projects

The tests of these modules pass with a guard of holdfast on each route, server, handler or job as they do without, but for the differences
that are listed. ` + "`make -C lab suites`" + ` writes this page, and a run of one suite its section:
` + "`cd lab/suites && GOWORK=off go test -timeout 1h -run TestSuites . -suite gin -page RESULTS.md`" + `.

Each module is copied at its version, and gets a call at the place where all routes are registered, as a user's ` + "`Use(guard)`" + ` would
do. Each request, call, task or run has a key of its own, so the guards run and record, and should refuse none. A guard of HTTP is in
front of all middlewares of the route, or innermost: right in front of the handler. With "replayed", each request runs twice, and the
test gets what the guard has recorded of the first response.

"tests" counts the parts of tests too. "refused" are mostly requests whose clients have left before they began. "differences" counts
a test once, or its parts, if these differ. Tests that do not pass without a guard on this machine are not compared.

The same command runs [the conformance tests of Connect and grpc-go](../RESULTS.md#conformance-of-connect-and-grpc).
`

// Page returns the page with the sections of these reports, and those of the other suites as they are on the page of before.
func Page(before, where string, reports []Report) string {
	sections := map[string]string{}
	for section := range strings.SplitSeq(before, "\n## ") {
		name, _, _ := strings.Cut(section, "\n")
		sections[name] = strings.TrimRight(section, "\n") + "\n"
	}
	page := intro
	for _, suite := range All {
		section := sections[suite.Name]
		for _, r := range reports {
			if r.Copy.Suite.Name == suite.Name {
				section = r.section(where)
			}
		}
		if section != "" {
			page += "\n## " + section
		}
	}
	return page
}

// section returns the section of the page about a suite, without the marks of its title.
func (r Report) section(where string) string {
	var text strings.Builder
	fmt.Fprintf(&text, `%s

%s %s, measured %s.

| guard | tests | pass without | pass with | guarded runs | refused | differences |
| --- | --- | --- | --- | --- | --- | --- |
`, r.Copy.Suite.Name, r.Copy.Suite.Module, r.Copy.Version, where)
	for _, row := range r.Rows {
		fmt.Fprintf(&text, "| %s | %d | %d | %d | %d | %d | %d |\n", row.Guard, len(row.Without.Outcomes), row.Without.Count(Passed),
			row.With.Count(Passed)+len(row.Unsteady), row.Runs, row.Refused, len(row.Expected)+len(row.Failed))
	}
	var lines []string
	for i, a := range r.Copy.Suite.Accepted {
		if r.met[i] > 0 {
			lines = append(lines, fmt.Sprintf("| `%s` | %s | %s |\n", name(Test{a.Package, a.Test}), with(a.Guards), a.Reason))
		}
	}
	for _, row := range r.Rows {
		for _, d := range row.Failed {
			lines = append(lines, fmt.Sprintf("| `%s` | %s | **unexpected** |\n", name(d.Test), row.Guard))
		}
	}
	if len(lines) > 0 {
		text.WriteString("\n| test | differs with | because the guard |\n| --- | --- | --- |\n" + strings.Join(lines, ""))
	}
	text.WriteString(r.listed("Passed only when they ran again, with the same guard, as tests do that wait for some milliseconds and then look",
		func(row Row) []Difference { return row.Unsteady }))
	text.WriteString(r.listed("Failed with the guard, and also with a middleware that only pings Redis in its place, as tests do that allow for no delay",
		func(row Row) []Difference { return row.Slow }))
	return text.String()
}

// name returns the name of a test on the page.
func name(t Test) string {
	if t.Package == "." {
		return t.Name
	}
	return t.Package + ": " + t.Name
}

func with(guards []string) string {
	if len(guards) == 0 {
		return "all"
	}
	return strings.Join(guards, "; ")
}

// listed returns a line about the tests that each row has in a list, "" if there are none.
func (r Report) listed(title string, list func(Row) []Difference) string {
	var all []string
	for _, row := range r.Rows {
		for _, d := range list(row) {
			all = append(all, "`"+name(d.Test)+"`")
		}
	}
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	return "\n" + title + ":\n" + strings.Join(slices.Compact(all), ",\n") + ".\n"
}
