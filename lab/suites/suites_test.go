package suites_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/lab/suites"
	"github.com/holdfast-go/holdfast/lab/suites/guards/chi"
	"github.com/holdfast-go/holdfast/lab/suites/guards/installed"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

var (
	onlySuite = flag.String("suite", "", "the name of the only suite to run")
	onlyGuard = flag.String("guard", "", "the only guard to install")
	keep      = flag.String("keep", "", "a folder for the copies of the modules, which are kept; otherwise they are removed")
	race      = flag.Bool("detect-races", false, "compile the suites with -race")
	page      = flag.String("page", "", "the page to write, or the sections of it that are about the suites that run")
)

// TestSuites: the tests of other projects pass with guards as they do without, but for what is accepted.
func TestSuites(t *testing.T) {
	reports := make([]suites.Report, len(suites.All))
	t.Run("of", func(t *testing.T) { // returns when all have ended
		for i, suite := range suites.All {
			if *onlySuite == "" || *onlySuite == suite.Name {
				t.Run(suite.Name, func(t *testing.T) {
					t.Parallel() // since most of them wait most of the time
					reports[i] = run(t, suite, testkit.Start(t, testkit.TCP()))
				})
			}
		}
	})
	if *page == "" {
		return
	}
	reports = slices.DeleteFunc(reports, func(r suites.Report) bool { return r.Copy == nil })
	where := fmt.Sprintf("on %d cores of %s/%s with %s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	before, err := os.ReadFile(*page)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.WriteFile(*page, []byte(suites.Page(string(before), where, reports)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// run runs a suite without guards, and with each of them.
func run(t *testing.T, suite suites.Suite, server *testkit.Server) suites.Report {
	var flags []string
	if *race {
		flags = []string{"-race"}
	}
	c, err := suites.NewCopy(suite, folder(t, suite), flags...)
	if err != nil {
		t.Fatal(err)
	}
	addr, rdb := server.Options().Addr, server.Client()
	without, err := c.Without(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	var rows []suites.Row
	for _, guard := range suite.Guards {
		if *onlyGuard != "" && *onlyGuard != guard {
			continue
		}
		if err = rdb.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		checked, err := c.Check(t.Context(), guard, addr, without)
		if err != nil {
			t.Errorf("%s: %v", guard, err)
			continue
		}
		row := counted(t, rdb, checked)
		rows = append(rows, row)
		for _, d := range checked.Failed {
			t.Errorf("%s, %s: %s without, %s with\n%s", guard, d.Test, d.Without, d.With, d.Output)
		}
		for _, d := range checked.Unsteady {
			t.Logf("%s, %s passed when it ran again, but first: %s\n%s", guard, d.Test, d.With, d.Output)
		}
		for _, d := range checked.Slow {
			t.Logf("%s, %s failed with the baseline too when it ran again: %s\n%s", guard, d.Test, d.With, d.Output)
		}
	}
	report := suites.NewReport(c, rows)
	if stale := report.Stale(); len(stale) > 0 && *onlyGuard == "" {
		t.Errorf("accepted, but there is no such difference: %v", stale)
	}
	return report
}

// counted adds what the guards have counted, and logs their log.
func counted(t *testing.T, rdb *redis.Client, checked suites.Checked) suites.Row {
	row := suites.Row{Checked: checked}
	counts, err := rdb.HGetAll(t.Context(), installed.Counts).Result()
	if err != nil {
		t.Fatal(err)
	}
	for what, n := range counts {
		count, _ := strconv.Atoi(n)
		switch {
		case strings.HasPrefix(what, "run: "):
			row.Runs += count
		case what != "refused: "+core.ReasonReplayed:
			row.Refused += count
		}
	}
	t.Logf("%s: %d of %d pass, without guard %d; %v", checked.Guard, checked.With.Count(suites.Passed), len(checked.With.Outcomes),
		checked.Without.Count(suites.Passed), counts)
	if row.Runs == 0 {
		t.Errorf("%s has guarded nothing", checked.Guard)
	}
	for _, line := range rdb.LRange(t.Context(), installed.Log, 0, 30).Val() {
		t.Logf("log of %s: %s", checked.Guard, line)
	}
	return row
}

// folder returns where the copy of a suite is made.
func folder(t *testing.T, suite suites.Suite) string {
	if *keep == "" {
		return t.TempDir()
	}
	dir := filepath.Join(*keep, suite.Guard)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestCompare: a test counts if it passes without a guard only, and once if the same goes for a part of it.
func TestCompare(t *testing.T) {
	outcomes := func(all map[string]suites.Outcome) suites.Results {
		r := suites.Results{Outcomes: map[suites.Test]suites.Outcome{}}
		for name, outcome := range all {
			r.Outcomes[suites.Test{Package: ".", Name: name}] = outcome
		}
		return r
	}
	without := outcomes(map[string]suites.Outcome{
		"TestA": suites.Passed, "TestB": suites.Passed, "TestB/part": suites.Passed, "TestB/other": suites.Passed,
		"TestC": suites.Failed, "TestD": suites.Skipped, "TestE": suites.Passed, "TestF": suites.Passed,
	})
	with := outcomes(map[string]suites.Outcome{
		"TestA": suites.Passed, "TestB": suites.Failed, "TestB/part": suites.Failed, "TestB/other": suites.Passed,
		"TestC": suites.Failed, "TestD": suites.Failed, "TestE": suites.Unfinished,
	})
	var got []string
	for _, d := range suites.Compare("once", without, with) {
		got = append(got, d.Test.Name+" "+string(d.With))
	}
	if want := []string{"TestB/part fail", "TestE unfinished", "TestF missing"}; !slices.Equal(got, want) {
		t.Errorf("differences %q, want %q", got, want)
	}
}

// TestBrokenGuardIsReported: the harness finds a guard that breaks a framework, and accepts only what it was told to.
func TestBrokenGuardIsReported(t *testing.T) {
	addr := testkit.Start(t, testkit.TCP()).Options().Addr
	suite := suites.All[slices.IndexFunc(suites.All, func(s suites.Suite) bool { return s.Name == "chi" })]
	suite.Packages = []string{"."}
	suite.Accepted = []suites.Accepted{{Package: ".", Test: "TestMuxBasic", Reason: "for this test"}}
	c, err := suites.NewCopy(suite, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	without, err := c.Without(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	if n := without.Count(suites.Passed); n < 50 || n != len(without.Outcomes) {
		t.Errorf("without a guard, %d of %d tests pass", n, len(without.Outcomes))
	}
	checked, err := c.Check(t.Context(), chi.Broken, addr, without)
	if err != nil {
		t.Fatal(err)
	}
	failed := func(name string) func(suites.Difference) bool {
		return func(d suites.Difference) bool { return d.Test.Name == name && d.With == suites.Failed }
	}
	if !slices.ContainsFunc(checked.Failed, failed("TestMuxMounts")) || !slices.ContainsFunc(checked.Expected, failed("TestMuxBasic")) {
		t.Errorf("%d differences, %d of them expected", len(checked.Failed)+len(checked.Expected), len(checked.Expected))
	}
}
