package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRowsOfOtherCode: commits of pages leave rows valid, commits of code do not.
func TestRowsOfOtherCode(t *testing.T) {
	t.Parallel()
	const files = "100644 blob 1\tcore/lock.go\n100644 blob 2\tREADME.md\n100644 blob 3\tlab/proofs/rows/a.json\n" +
		"100644 blob 4\tdocs/a b.svg\n100644 blob 5\tlab/mutants/list.go\n"
	for name, test := range map[string]struct {
		files string
		same  bool
	}{
		"a page":       {strings.Replace(files, "blob 2", "blob 7", 1), true},
		"a row":        {strings.Replace(files, "blob 3", "blob 7", 1), true},
		"a picture":    {strings.Replace(files, "blob 4", "blob 7", 1), true},
		"a new page":   {files + "100644 blob 8\tlab/NEW.md\n", true},
		"code":         {strings.Replace(files, "blob 1", "blob 7", 1), false},
		"new code":     {files + "100644 blob 8\tcore/new.go\n", false},
		"a mode":       {strings.Replace(files, "100644 blob 1", "100755 blob 1", 1), false},
		"another name": {strings.Replace(files, "core/lock.go", "core/lease.go", 1), false},
		"a mutant":     {strings.Replace(files, "blob 5", "blob 7", 1), true},
	} {
		if same := tree(test.files).code("model") == tree(files).code("model"); same != test.same {
			t.Errorf("%s: same code %v, want %v", name, same, test.same)
		}
	}
	if with := strings.Replace(files, "blob 5", "blob 7", 1); tree(with).code("mutants") == tree(files).code("mutants") {
		t.Error("a mutant: its proof stays valid")
	}
}

// TestCountsFor: a test counts for the proofs that run it, and the source of the library for all.
func TestCountsFor(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]map[string]bool{
		"core/lock.go":                            {"faults": true, "stress": true},
		"core/internal/script/model_test.go":      {"faults": false, "stress": true, "model": true, "mutants": true},
		"tests/outage/direct_test.go":             {"faults": false, "stress": true, "model": false, "mutants": true},
		"tests/testkit/relay.go":                  {"faults": true, "stress": true},
		"tests/redlock/storm_test.go":             {"redlock": true, "elections": false, "versions": true},
		"lab/faults/round/round_test.go":          {"faults": true, "stress": false},
		"lab/interop/renewals_test.go":            {"faults": false, "interop-long": true},
		"middleware/nethttp/fuzz_test.go":         {"fuzz": true, "suites": false},
		"tests/conformance/lock/lock.go":          {"topologies": true, "faults": false},
		"docs/redis.md":                           {"ci": false},
		"core/internal/script/lua/lock/bar.lua":   {"faults": true, "model": true},
		"lab/proofs/list.go":                      {"ci": false},
		"examples/flashsale/main_test.go":         {"clone": true},
		"tests/storms/cronworker/cronworker.go":   {"crons": true, "tasks": true, "faults": false},
		"internal/httprecord/record_test.go":      {"fuzz": true, "bench": false},
		"tests/sentinel/ack_grants_test.go":       {"cluster": true, "redlock": false},
		"cmd/holdfast/internal/cli/cli_test.go":   {"commands": true, "calls": false},
		"middleware/internal/writer/main_test.go": {"calls": false, "ci": true},
	} {
		for proof, counted := range want {
			if got := countsFor(proof, file); got != counted {
				t.Errorf("%s counts for %s: %v", file, proof, got)
			}
		}
	}
}

// TestReading: what an output must have, and what it must not.
func TestReading(t *testing.T) {
	t.Parallel()
	p := proof{figures: []figure{
		none("lost", `(\d+) lost`), atLeast(3, "packages", packages), atLeast(1, "tasks", `([\d,]+) orders`).each(5),
	}}
	for output, want := range map[string]struct {
		tasks  int64
		failed string
	}{
		"ok \ta\t0.123s\nok \tb\t61.234s\nok \tc\t0.01s [no tests to run]\n0 lost, 0 lost\n1,000 orders\n": {5_000, ""},
		"ok \ta\t0.123s\n1 lost, 2 lost\n1 orders\n":                                                       {5, "3 lost"},
		"ok \ta\t0.123s\n1 orders\n":                                                                       {0, "the output has no lost"},
	} {
		found, failed := p.read(output)
		if failed != want.failed || found["tasks"] != want.tasks {
			t.Errorf("%q: %v, failed %q, want %+v", output, found, failed, want)
		}
	}
}

// TestState: a proof has passed when all parts have on this code, and their sum is large enough.
func TestState(t *testing.T) {
	t.Parallel()
	p := proof{name: "p", parts: numbers(2), command: "c", figures: []figure{atLeast(3, "rounds", `(\d+)`)}}
	part := func(n, code string, rounds int64, failed string) row {
		return row{Part: n, Code: code, Commit: "abc", Command: "c", Figures: map[string]int64{"rounds": rounds}, Failed: failed, Date: time.Now()}
	}
	for name, test := range map[string]struct {
		rows    []row
		passed  bool
		outcome string
	}{
		"nothing":    {nil, false, "not run"},
		"half":       {[]row{part("01", "new", 2, "")}, false, "1 of 2 parts"},
		"all":        {[]row{part("01", "new", 2, ""), part("02", "new", 1, "")}, true, "passed"},
		"too few":    {[]row{part("01", "new", 1, ""), part("02", "new", 1, "")}, false, "**failed:** 2 rounds are fewer than 3"},
		"failed":     {[]row{part("01", "new", 2, ""), part("02", "new", 1, "2 lost")}, false, "**failed:** 02 2 lost"},
		"other code": {[]row{part("01", "old", 2, ""), part("02", "old", 1, "")}, false, "passed, **on other code**"},
		"mixed":      {[]row{part("01", "new", 2, ""), part("02", "old", 1, "")}, false, "1 of 2 parts"},
	} {
		if s := p.stateOf(test.rows, "new"); s.passed != test.passed || s.outcome != test.outcome || s.few != (name == "too few") {
			t.Errorf("%s: %+v, want %q", name, s, test.outcome)
		}
	}
}

// TestKeep: a run takes the place of the one before, and says how often that part had failed on the same code.
func TestKeep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, r := range []row{
		{Part: "01", Code: "old", Failed: "x"}, {Part: "01", Code: "new", Failed: "x"}, {Part: "02", Code: "new"}, {Part: "01", Code: "new"},
	} {
		if err := keep(dir, "p", r); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := rowsOf(dir, "p")
	if err != nil || len(rows) != 2 || rows[0].Failed != "" || rows[0].Before != 1 || rows[1].Before != 0 {
		t.Errorf("%+v, %v", rows, err)
	}
}

// TestTable: the table is between its two lines, and the rest of the page stays.
func TestTable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	page := filepath.Join(dir, "page.md")
	if err := os.WriteFile(page, []byte("before\n"+tableBegins+"an earlier one\n"+tableEnds+"after\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := writeTable(page, dir, "abc", ""); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(page)
	if s := string(text); err != nil || !strings.HasPrefix(s, "before\n"+tableBegins) || !strings.HasSuffix(s, tableEnds+"after\n") ||
		strings.Count(s, "| mutants |") != 1 || strings.Contains(s, "an earlier one") {
		t.Errorf("%s, %v", s, err)
	}
}

// TestOnly: what -only names has to exist, so that nobody waits for a proof that does not run.
func TestOnly(t *testing.T) {
	t.Parallel()
	for only, runs := range map[string]int{"": -1, "^ci$": 1, "^bench ": 3, "^bench$": 0} {
		todo, err := new(runner).missing(only)
		if none := runs == 0; none != (err != nil) || runs >= 0 && len(todo) != runs {
			t.Errorf("%q: %v, %v", only, todo, err)
		}
	}
}

// TestList: names are names of files, and each proof says what must hold.
func TestList(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, p := range proofs {
		if seen[p.name] || strings.ContainsAny(p.name, " /") || p.shows == "" || p.minutes == 0 || len(p.figures) == 0 {
			t.Errorf("%+v", p)
		}
		seen[p.name] = true
		for _, f := range p.figures {
			if pattern := f.pattern.String(); f.pattern.NumSubexp() > 0 && !strings.Contains(pattern, `(\d+)`) {
				t.Errorf("%s: the group of %s is no number", p.name, pattern)
			}
		}
	}
}

// TestFuzzTests: the proof and the Makefile run each fuzz test of the repository, in the package where it is.
func TestFuzzTests(t *testing.T) {
	t.Parallel()
	found, err := git("-C", "../..", "grep", "-E", "^func Fuzz", "--", "*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	fuzz := proofs[slices.IndexFunc(proofs, func(p proof) bool { return p.name == "fuzz" })]
	tests := regexp.MustCompile(`(?m)^(.*)/[^/]+:func (Fuzz\w+)`).FindAllStringSubmatch(found, -1)
	for _, test := range tests {
		if !slices.Contains(fuzz.parts, test[1]+" "+test[2]) || !strings.Contains(string(makefile), "$(FUZZ) "+test[2]+" ./"+test[1]+"\n") {
			t.Errorf("%s of %s is not run", test[2], test[1])
		}
	}
	if len(fuzz.parts) != len(tests) {
		t.Errorf("%d parts for %d fuzz tests", len(fuzz.parts), len(tests))
	}
}
