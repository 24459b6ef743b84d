//go:build holdfast_simulation

package simulate_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/holdfast-go/holdfast/lab/faults/check"
	"github.com/holdfast-go/holdfast/lab/faults/history"
	"github.com/holdfast-go/holdfast/lab/faults/linear"
)

var (
	seeds   = flag.Int("seeds", 2, "how many simulations to run")
	first   = flag.Uint64("seed", 1, "of the first one")
	hours   = flag.Float64("hours", 0.25, "how long each is, in virtual time")
	latency = flag.Duration("latency", 0, "the most that a link takes in each direction without a fault, see lab/faults/RESULTS.md")
	models  = flag.Bool("models", false, "fail for what the models of package linear find, and for nothing else")
	out     = flag.String("out", "", "directory for the histories of those with violations; a temporary one if empty")
)

// TestSimulate runs simulations, side by side as far as there are processors.
func TestSimulate(t *testing.T) {
	logging.Disable() // go-redis would tell of every dial that is refused
	sum := newSummary()
	t.Run("seeds", func(t *testing.T) {
		for i := range *seeds {
			seed := *first + uint64(i)
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				kind := kindOf(seed)
				events := simulate(t, kind, seed, time.Duration(*hours*float64(time.Hour)))
				report, judgement := check.Check(events), linear.Check(events)
				findings := judgement.Illegal
				if !*models {
					findings = slices.Concat(report.Violations, findings)
				}
				for _, finding := range findings[:min(20, len(findings))] {
					t.Error(finding)
				}
				if t.Failed() {
					write(t, seed, events, judgement)
				}
				sum.add(kind, report, judgement)
			})
		}
	})
	sum.print(os.Stdout)
}

// write leaves the history behind, with pictures of what the models refuse: a seed does not bring it back, since
// goroutines run in another order each time.
func write(t *testing.T, seed uint64, events []history.Event, judgement *linear.Report) {
	dir := *out
	if dir == "" {
		dir, _ = os.MkdirTemp("", "holdfast-simulation")
	}
	_ = os.MkdirAll(dir, 0o755)
	path, err := filepath.Abs(filepath.Join(dir, fmt.Sprintf("simulation-%d.jsonl", seed)))
	if err != nil {
		t.Error(err)
		return
	}
	f, err := os.Create(path)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	lines := json.NewEncoder(f)
	for _, e := range events {
		_ = lines.Encode(e)
	}
	pictures, err := judgement.Draw(path)
	if err != nil {
		t.Error(err)
	}
	for _, picture := range pictures {
		t.Log("picture: ", picture)
	}
	t.Logf("check it again: cd lab && go run ./faults/recheck %s", path)
}

// TestUnexcusedLossesAreViolations is a baseline: without the excuse that a clock was put forward, the checkers find violations. It has no
// other fault, because among all of them the few steps of a run sometimes meet no lease.
func TestUnexcusedLossesAreViolations(t *testing.T) {
	logging.Disable()
	baseline := kind{name: "baseline", servers: 1, clocks: true, only: 38}
	events := simulate(t, baseline, *first, 20*time.Minute)
	if report := check.Check(events); len(report.Violations) > 0 {
		t.Errorf("violations with the excuse: %v", report.Violations)
	}
	steps := 0
	for i := range events {
		if events[i].Loses == clockForward {
			events[i].Loses = ""
			steps++
		}
	}
	report, judgement := check.Check(events), linear.Check(events)
	t.Logf("%d steps forward, %d violations, %d findings of the models", steps, len(report.Violations), len(judgement.Illegal))
	if len(report.Violations) == 0 || len(judgement.Illegal) == 0 {
		t.Error("not found")
	}
}

// simulate lets clients contend for so long, with a fault now and then, and returns what happened.
func simulate(t *testing.T, kind kind, seed uint64, length time.Duration) (events []history.Event) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kind, seed)
		var stop context.CancelFunc
		w.ctx, stop = context.WithCancel(context.Background())
		n := newNemesis(w)
		time.Sleep(5 * time.Minute)
		n.rage(length)
		w.say(history.Event{Kind: history.Final})
		time.Sleep(ttl + 9*time.Second)
		stop()
		for _, c := range n.clients {
			c.close()
		}
		time.Sleep(20 * time.Minute) // for what those who have crashed still try
		for _, s := range w.servers {
			s.stop()
		}
		events = w.sorted()
		t.Logf("%d hand-overs inside a process", w.handOvers.Load())
		if !kind.redlock() && w.handOvers.Load() == 0 {
			t.Error("no hold was handed over inside a process")
		}
	})
	return events
}
