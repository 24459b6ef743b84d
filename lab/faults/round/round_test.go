package round_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/lab/faults/check"
	"github.com/holdfast-go/holdfast/lab/faults/history"
	"github.com/holdfast-go/holdfast/lab/faults/linear"
	"github.com/holdfast-go/holdfast/lab/faults/nemesis"
	"github.com/holdfast-go/holdfast/lab/faults/register"
	"github.com/holdfast-go/holdfast/lab/faults/topology"
	"github.com/holdfast-go/holdfast/lab/faults/worker"
)

const (
	ttl    = time.Second
	warmUp = 2 * time.Second
)

// Processes and callers in each.
var workers, goroutines = 5, 5

var (
	total    = flag.Duration("faults", 0, "for how long to inject faults, in all; 0: a few seconds on one server")
	each     = flag.Duration("each", time.Minute, "how long a round is, each on another topology")
	seed     = flag.Uint64("seed", 1, "of the first round")
	out      = flag.String("out", "", "directory for histories and the summary; a temporary one if empty")
	keep     = flag.Bool("keep", false, "keep the histories of rounds without violations too")
	shim     = flag.Bool("shim", false, "build workers whose wall clock can be set, and with them the standard library")
	only     = flag.String("only", "", "the one topology to run; all if empty")
	together = flag.Bool("together", false, "make all rounds at the same time; not with the topology clock")
	limits   = flag.Bool("limits", false, "let 4 processes of 16 callers contend for one semaphore, with n = 5, then 3, then 8")
	models   = flag.Bool("models", false, "fail for what the models of package linear find, and for nothing else")
	topped   = flag.Int("kinds", len(topology.Kinds), "of how many topologies, from the first, rounds are made")
)

// TestFaults makes rounds on one topology after the other.
func TestFaults(t *testing.T) {
	dir := outDir(t)
	program := os.Args[0]
	if *shim {
		program = buildWorker(t)
	}
	kinds := topology.Kinds[:*topped]
	if *only != "" {
		kinds = []topology.Kind{topology.Kind(*only)}
	}
	length, rounds := *each, 1+int((*total-1) / *each)
	if *total == 0 {
		length, rounds, kinds = 4*time.Second, 1, kinds[:1]
	}
	if *limits {
		workers, goroutines = 4, 16
	}
	counts := make(map[string]int)
	s := newSummary()
	t.Run("rounds", func(t *testing.T) {
		for i := range rounds {
			r := round{
				kind: kinds[i%len(kinds)], seed: *seed + uint64(i), length: length, program: program, counts: counts,
			}
			r.path = filepath.Join(dir, fmt.Sprintf("round-%03d-%s-seed-%d.jsonl", i+1, r.kind, r.seed))
			t.Run(fmt.Sprintf("%03d-%s", i+1, r.kind), func(t *testing.T) {
				if *together {
					t.Parallel()
					r.counts = make(map[string]int)
				}
				report, judgement := r.judge(t)
				s.add(r.seed, report, judgement)
			})
		}
	})
	s.write(t, filepath.Join(dir, "summary.md"))
	for _, n := range changingLimits {
		if *limits && !*models && s.all.InUse[n] < n {
			t.Errorf("inconclusive: at most %d permits of %d were in use", s.all.InUse[n], n)
		}
	}
}

// outDir returns the directory for histories. A temporary one stays if the test fails, because of what is in it.
func outDir(t *testing.T) string {
	t.Helper()
	if *out == "" {
		dir, err := os.MkdirTemp("", "holdfast-faults")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if !t.Failed() && !*keep {
				_ = os.RemoveAll(dir)
			}
		})
		return dir
	}
	dir, err := filepath.Abs(*out)
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// round is one deployment, its workers and a nemesis for a while.
type round struct {
	kind    topology.Kind
	seed    uint64
	length  time.Duration
	program string
	counts  map[string]int
	path    string // of the history
}

// judge makes a history, and judges it by the checkers and by the models.
func (r round) judge(t *testing.T) (*check.Report, *linear.Report) {
	t.Helper()
	if !t.Run("run", func(t *testing.T) { r.record(t) }) {
		t.Logf("the history so far: %s", r.path)
	}
	events, err := history.ReadFile(r.path)
	if err != nil {
		t.Fatal(err)
	}
	report, judgement := check.Check(events), linear.Check(events)
	findings := judgement.Illegal
	if !*models {
		findings = slices.Concat(report.Violations, findings)
	} else if report.Grants == 0 {
		t.Error("inconclusive: nothing was granted")
	}
	for i, finding := range findings {
		if i == 20 {
			t.Errorf("and %d more", len(findings)-i)
			break
		}
		t.Error(finding)
	}
	report.Print(testWriter{t})
	judgement.Print(testWriter{t})
	pictures, err := judgement.Draw(r.path)
	if err != nil {
		t.Error(err)
	}
	for _, picture := range pictures {
		t.Log("picture: ", picture)
	}
	r.leave(t)
	return report, judgement
}

// leave removes the history, unless the round failed.
func (r round) leave(t *testing.T) {
	if t.Failed() || *keep {
		t.Logf("check it again: cd lab && go run ./faults/recheck %s", r.path)
		return
	}
	_ = os.Remove(r.path)
}

// record makes the history.
func (r round) record(t *testing.T) {
	t.Helper()
	file, err := os.Create(r.path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	log := history.NewLog(file, "test")
	log.Say(history.Event{Kind: history.Meta, Name: string(r.kind), Until: int64(ttl), Value: int64(r.seed)})
	dir, err := os.MkdirTemp("", "hf")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	resource, err := register.Serve(filepath.Join(dir, "r"), log)
	if err != nil {
		t.Fatal(err)
	}
	defer resource.Close()
	d := topology.Start(t, r.kind, workers)
	ctx, stop := context.WithCancel(t.Context())
	wait := watch(ctx, d, log)
	defer func() { stop(); wait() }()
	f := newFleet(t, r.program, d, log, filepath.Join(dir, "r"), r.seed, r.limits())
	time.Sleep(warmUp)
	f.awaitGrants()
	nemesis.New(t, d, f, log, nemesis.Plan{Seed: r.seed, TTL: ttl, Counts: r.counts, Clocks: *shim, Lossless: *limits}).Rage(r.length)
	d.Settle()
	f.calmDown()
	log.Say(history.Event{Kind: history.Final})
	if *total > 0 {
		time.Sleep(ttl + 9*time.Second) // the longest that a lock may stay taken, see package check
	}
	f.finish()
	sweep(t, d, log)
	if err := log.Err(); err != nil {
		t.Fatal(err)
	}
}

// changingLimits are n of the semaphore with -limits.
var changingLimits = []int{5, 3, 8}

// limits returns n of the semaphore during the round, nil if all kinds of locks are taken.
func (r round) limits() *worker.Limits {
	if !*limits {
		return nil
	}
	return &worker.Limits{N: changingLimits, Began: history.Now(), For: warmUp + r.length}
}

// testWriter logs lines.
type testWriter struct{ t testing.TB }

func (w testWriter) Write(line []byte) (int, error) {
	w.t.Helper()
	w.t.Logf("%s", line[:max(0, len(line)-1)])
	return len(line), nil
}
