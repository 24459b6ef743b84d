package suites

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast/lab/suites/guards/installed"
)

// Outcome is how a test has ended.
type Outcome string

// The outcomes of a test. One that has begun without an end was in progress when its test binary died.
const (
	Passed     Outcome = "pass"
	Failed     Outcome = "fail"
	Skipped    Outcome = "skip"
	Unfinished Outcome = "unfinished"
	Missing    Outcome = "missing"
)

// Test names a test or a part of it: "TestA/part".
type Test struct{ Package, Name string }

func (t Test) String() string { return t.Package + "." + t.Name }

// top returns the name of the function. grpc-go has methods in place of functions, each of which is a part of a function named Test.
func (t Test) top() string {
	names := strings.SplitN(t.Name, "/", 3)
	if names[0] == "Test" {
		return strings.Join(names[:min(2, len(names))], "/")
	}
	return names[0]
}

// withoutParts removes the tests of which a part is in the list too.
func withoutParts[T any](all []T, test func(T) Test) []T {
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool {
		return slices.ContainsFunc(all, func(other T) bool {
			part, whole := test(other), test(one)
			return part.Package == whole.Package && strings.HasPrefix(part.Name, whole.Name+"/")
		})
	})
}

// Results has the outcome and the output of each test of a run.
type Results struct {
	Outcomes map[Test]Outcome
	Output   map[Test]string
}

func newResults() Results {
	return Results{Outcomes: map[Test]Outcome{}, Output: map[Test]string{}}
}

// Count returns how many have ended so.
func (r Results) Count(want ...Outcome) (n int) {
	for _, outcome := range r.Outcomes {
		if slices.Contains(want, outcome) {
			n++
		}
	}
	return n
}

// Run runs the tests of all packages, or those of the given tests and one package at a time, with this guard on a Redis; with none if
// it is "".
func (c *Copy) Run(ctx context.Context, guard, redis string, only ...Test) (Results, error) {
	results := newResults()
	var (
		mu     sync.Mutex
		failed []error
		group  sync.WaitGroup
		slots  = make(chan struct{}, 4) // of packages that run at a time
	)
	if len(only) > 0 {
		slots = make(chan struct{}, 1)
	}
	for _, name := range slices.Sorted(maps.Keys(c.tests)) {
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			ofPackage := newResults()
			tests, err := c.testsOf(ctx, name, only)
			if err == nil {
				err = c.runPackage(ctx, ofPackage, name, tests, guard, redis)
			}
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(results.Outcomes, ofPackage.Outcomes)
			maps.Copy(results.Output, ofPackage.Output)
			failed = append(failed, err)
		})
	}
	group.Wait()
	if err := errors.Join(failed...); err != nil {
		return results, err
	}
	if c.interop == "" {
		return results, nil
	}
	calls := slices.Clone(cases)
	if len(only) > 0 {
		calls = slices.DeleteFunc(calls, func(name string) bool { return !slices.Contains(only, Test{interop, name}) })
	}
	return results, c.runInterop(ctx, results, calls, guard, redis)
}

// testsOf returns the names of the tests of a package that are to run: all, or those of the given ones.
func (c *Copy) testsOf(ctx context.Context, name string, only []Test) (tests []string, err error) {
	if len(only) == 0 {
		listed, err := c.command(ctx, name, "", "", "-test.list", ".").Output()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return testName.FindAllString(string(listed), -1), nil
	}
	for _, test := range only {
		if test.Package == c.short(name) && !slices.Contains(tests, test.top()) {
			tests = append(tests, test.top())
		}
	}
	return tests, nil
}

// testName finds what -test.list prints, but for benchmarks.
var testName = regexp.MustCompile(`(?m)^(Test|Example|Fuzz)\w*$`)

// short returns the name of a package inside its module: "." or "middleware/cors".
func (c *Copy) short(importPath string) string {
	if short := strings.TrimPrefix(strings.TrimPrefix(importPath, c.Suite.Module), "/"); short != "" {
		return short
	}
	return "."
}

// runPackage runs tests of a package. If one of them ends the process, by a panic, the others run in another process.
func (c *Copy) runPackage(ctx context.Context, results Results, name string, tests []string, guard, redis string) error {
	for len(tests) > 0 {
		pattern := "^" + strings.NewReplacer("/", "$/^", "|", "$|^").Replace(strings.Join(tests, "|")) + "$"
		args := []string{"-test.v=test2json", "-test.timeout=30m", "-test.run", pattern}
		var events, failure bytes.Buffer
		cmd := c.command(ctx, name, guard, redis, append(args, c.Suite.Args(redis)...)...)
		cmd.Stdout, cmd.Stderr = &events, &failure
		failed := cmd.Run() // that a test has failed is in the events
		died := bytes.Contains(events.Bytes(), []byte(`"Output":"panic: `))
		if err := results.read(c.short(name), &events); err != nil {
			return err
		}
		left := slices.DeleteFunc(slices.Clone(tests), func(test string) bool { return results.Outcomes[Test{c.short(name), test}] != "" })
		switch {
		case failed == nil: // some examples have no output to compare, and are only compiled
			return nil
		case len(left) == len(tests):
			return fmt.Errorf("%s ran no test: %w\n%s%s", name, failed, failure.String(), results.Output[Test{c.short(name), ""}])
		case !died:
			return nil
		}
		tests = left
	}
	return nil
}

// command returns a command that runs the compiled tests of a package, and prints their events.
func (c *Copy) command(ctx context.Context, name, guard, redis string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.tests[name], args...)
	if guard != "" || redis != "" {
		cmd = exec.CommandContext(ctx, "go", append([]string{"tool", "test2json", "-p", name, c.tests[name]}, args...)...)
	}
	cmd.Dir = filepath.Join(c.dir, strings.TrimPrefix(name, c.Suite.Module))
	cmd.Env = append(append(os.Environ(), "GOWORK=off"), guarded(guard, redis)...)
	return cmd
}

// date is a part of a name that differs from run to run.
var date = regexp.MustCompile(`[A-Z][a-z]{2}_[A-Z][a-z]{2}_[ _]?\d+_\d\d:\d\d:\d\d_[A-Z]+_\d{4}`)

// read reads the events of a package.
func (r Results) read(name string, events *bytes.Buffer) error {
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var event struct{ Action, Test, Output string }
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return fmt.Errorf("%q: %w", lines.Text(), err)
		}
		test := Test{name, date.ReplaceAllString(event.Test, "date")}
		switch outcome := Outcome(event.Action); {
		case event.Action == "output":
			if len(r.Output[test]) < 64<<10 { // some log megabytes
				r.Output[test] += event.Output
			}
		case event.Test == "":
		case event.Action == "run":
			r.Outcomes[test] = Unfinished
		case outcome == Passed, outcome == Failed, outcome == Skipped:
			r.Outcomes[test] = outcome
		}
	}
	return lines.Err()
}

// A Difference is a test whose outcome depends on the guard.
type Difference struct {
	Test          Test
	Guard         string
	Without, With Outcome
	Output        string
}

// Compare returns the tests that pass without a guard, and not with it, in the order of their names. A part of a test counts if
// none of its own parts does.
func Compare(guard string, without, with Results) []Difference {
	var all []Difference
	for test, before := range without.Outcomes {
		after, ran := with.Outcomes[test]
		if !ran {
			after = Missing
		}
		if before == Passed && after != Passed {
			all = append(all, Difference{test, guard, before, after, with.Output[test]})
		}
	}
	slices.SortFunc(all, func(a, b Difference) int { return strings.Compare(a.Test.String(), b.Test.String()) })
	return withoutParts(all, func(d Difference) Test { return d.Test })
}

// tries is how often tests run again.
const tries = 3

// Without runs a suite without a guard. Tests that fail run again, so that they are compared although the machine is busy.
func (c *Copy) Without(ctx context.Context, redis string) (Results, error) {
	results, err := c.Run(ctx, "", redis)
	for n := 0; n < tries && err == nil && results.Count(Failed, Unfinished) > 0; n++ {
		var failed []Test
		for test, outcome := range results.Outcomes {
			if outcome == Failed || outcome == Unfinished {
				failed = append(failed, test)
			}
		}
		var again Results
		again, err = c.Run(ctx, "", redis, withoutParts(failed, func(t Test) Test { return t })...)
		maps.DeleteFunc(again.Outcomes, func(_ Test, outcome Outcome) bool { return outcome != Passed })
		maps.Copy(results.Outcomes, again.Outcomes)
	}
	return results, err
}

// Checked is how the tests of a suite do with a guard.
type Checked struct {
	Guard    string
	Without  Results
	With     Results
	Expected []Difference // accepted
	Failed   []Difference // not accepted: fails each time with the guard, and never with the baseline
	Unsteady []Difference // not accepted, but passed when it ran again
	Slow     []Difference // not accepted, but failed with the baseline too when it ran again
}

// Check runs a suite with a guard. Tests that do not pass with it, and did without, run again, because many wait for a few
// milliseconds and then expect something to have happened: with the guard, and with a baseline that only takes the time of one.
func (c *Copy) Check(ctx context.Context, guard, redis string, without Results) (Checked, error) {
	checked, baseline := Checked{Guard: guard, Without: without}, installed.Baseline
	if strings.HasSuffix(guard, installed.Innermost) {
		baseline += installed.Innermost
	}
	var err error
	if checked.With, err = c.Run(ctx, guard, redis); err != nil {
		return checked, err
	}
	for _, d := range Compare(guard, without, checked.With) {
		if _, ok := c.Suite.accepts(d); ok {
			checked.Expected = append(checked.Expected, d)
		} else {
			checked.Failed = append(checked.Failed, d)
		}
	}
	for range tries {
		passed := func(again Results, d Difference) bool { return again.Outcomes[d.Test] == Passed }
		if err = checked.again(ctx, c, &checked.Unsteady, guard, redis, passed); err != nil {
			return checked, err
		}
		failed := func(again Results, d Difference) bool { return again.Outcomes[d.Test] != Passed }
		if err = checked.again(ctx, c, &checked.Slow, baseline, redis, failed); err != nil {
			return checked, err
		}
	}
	return checked, nil
}

// again runs the failed tests again, with a guard or with none, and moves those of which is is true to another list.
func (checked *Checked) again(ctx context.Context, c *Copy, to *[]Difference, guard, redis string, is func(Results, Difference) bool) error {
	var tests []Test
	for _, d := range checked.Failed {
		tests = append(tests, d.Test)
	}
	if len(tests) == 0 {
		return nil
	}
	again, err := c.Run(ctx, guard, redis, tests...)
	if err != nil {
		return err
	}
	checked.Failed = slices.DeleteFunc(checked.Failed, func(d Difference) bool {
		moves := is(again, d)
		if moves {
			*to = append(*to, d)
		}
		return moves
	})
	return nil
}

// accepts returns the reason for a difference.
func (s Suite) accepts(d Difference) (index int, ok bool) {
	index = slices.IndexFunc(s.Accepted, func(a Accepted) bool {
		return a.Package == d.Test.Package && (a.Test == d.Test.Name || strings.HasPrefix(d.Test.Name, a.Test+"/")) &&
			(len(a.Guards) == 0 || slices.Contains(a.Guards, d.Guard))
	})
	return index, index >= 0
}
