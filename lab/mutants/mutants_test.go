package mutants_test

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/lab/mutants"
)

var (
	kill     = flag.Bool("kill", false, "run the tests that should find the mutants; without it, only see whether they apply")
	baseline = flag.Bool("baseline", false, "see to it that the tests pass without the mutants")
	only     = flag.String("only", "", "regular expression of the mutants to run; all if empty")
	from     = flag.Int("from", 1, "the first of them to run")
	most     = flag.Int("most", len(mutants.All), "how many of them to run, from that one")
)

// killTime bounds the test of one mutant. One that takes so long has found nothing: tests bound their own waiting.
const killTime = 10 * time.Minute

// TestMutants fails for every mutant that survives, or that does not fit the source any more.
func TestMutants(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	killed, ran := 0, 0
	for i, m := range mutants.All {
		t.Run(m.Name, func(t *testing.T) {
			dir := t.TempDir()
			overlay, err := m.Apply(root, dir)
			if err != nil {
				t.Fatal(err)
			}
			seeTests(t, m.Killer, root)
			if !*kill || i < *from-1 || i >= *from-1+*most || !regexp.MustCompile(*only).MatchString(m.Name) {
				return
			}
			ran++
			if dies(t, m, root, dir, overlay) {
				killed++
			}
		})
	}
	if *kill {
		t.Logf("%d of %d mutants killed", killed, ran)
	}
}

// tests finds the names of tests in a file, also of fuzz tests.
var tests = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)`)

// seeTests fails if a test that has to find the mutant is not there, because it has another name now, for instance.
func seeTests(t *testing.T, k mutants.Killer, root string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, k.Package, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range tests.FindAllStringSubmatch(string(source), -1) {
			names = append(names, name[1])
		}
	}
	functions, _, _ := strings.Cut(k.Run, "/") // subtests have none
	for run := range strings.SplitSeq(functions, "|") {
		if !slices.ContainsFunc(names, regexp.MustCompile(run).MatchString) {
			t.Errorf("%s has no test %s", k.Package, run)
		}
	}
}

// dies runs the test with the mutant in it.
func dies(t *testing.T, m mutants.Mutant, root, dir, overlay string) bool {
	t.Helper()
	program := build(t, m.Killer, root, dir, overlay)
	began := time.Now()
	out, err := run(m.Killer, root, program)
	switch {
	case err == nil && bytes.Contains(out, []byte("no tests to run")):
		t.Errorf("there is no test %s", m.Run)
	case bytes.Contains(out, []byte("panic: test timed out")):
		t.Errorf("undecided: %s of %s has not ended in %v", m.Run, m.Package, killTime)
	case err == nil:
		t.Errorf("it survives %s of %s", m.Run, m.Package)
	case *baseline && !passes(t, m.Killer, root, dir):
	default:
		t.Logf("killed in %v by %s", time.Since(began).Round(time.Second), firstFailure(string(out)))
		return true
	}
	return false
}

// passes runs the test without the mutant: one that fails all the same has found nothing.
func passes(t *testing.T, k mutants.Killer, root, dir string) bool {
	t.Helper()
	out, err := run(k, root, build(t, k, root, dir, ""))
	if err != nil {
		t.Errorf("%s of %s fails without the mutant too: %s", k.Run, k.Package, firstFailure(string(out)))
	}
	return err == nil
}

func build(t *testing.T, k mutants.Killer, root, dir, overlay string) (program string) {
	t.Helper()
	program = filepath.Join(dir, "mutant.test")
	cmd := exec.Command("go", "test", "-c", "-overlay", overlay, "-tags", k.Tags, "-o", program, ".")
	cmd.Dir = filepath.Join(root, k.Package)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("it does not compile: %v\n%s", err, out)
	}
	return program
}

func run(k mutants.Killer, root, program string) ([]byte, error) {
	cmd := exec.Command(program, append([]string{"-test.run", k.Run, "-test.timeout", killTime.String()}, k.Args...)...)
	cmd.Dir = filepath.Join(root, k.Package)
	return cmd.CombinedOutput()
}

// place begins what a test says.
var place = regexp.MustCompile(`^\w+\.go:\d+: `)

// firstFailure tells which test has found it, and what that says.
func firstFailure(out string) string {
	for line := range strings.Lines(out) {
		if text := strings.TrimSpace(line); place.MatchString(text) {
			return text[:min(len(text), 160)]
		}
	}
	for line := range strings.Lines(out) {
		if text := strings.TrimSpace(line); strings.HasPrefix(text, "--- FAIL") {
			return text
		}
	}
	return "a crash"
}

func TestMutantThatDoesNotApply(t *testing.T) {
	m := mutants.All[0]
	m.Edits = [][2]string{{"this does not stand there", ""}}
	root, _ := filepath.Abs("../..")
	if _, err := m.Apply(root, t.TempDir()); err == nil || !strings.Contains(err.Error(), "does not apply any more") {
		t.Errorf("error %v", err)
	}
}
