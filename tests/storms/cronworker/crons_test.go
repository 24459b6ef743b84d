//go:build unix

package cronworker_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/storms/cronworker"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

var (
	crons = flag.Duration("crons", 0, "how long replicas with different clocks run, at least 20s; 0: not at all")
	seed  = flag.Uint64("seed", 1, "of what is done to them")
)

func skipUnlessAsked(t *testing.T) {
	t.Helper()
	if *crons == 0 {
		t.Skip("it takes minutes: make -C lab crons")
	}
}

// clocks are the offsets of five replicas.
var clocks = map[string]time.Duration{
	"-2s": -2 * time.Second, "-1s": -time.Second, "0s": 0, "+1s": time.Second, "+2s": 2 * time.Second,
}

// clockJobs are a short and a long job on both kinds of schedule, with cronlock and with a lock around the job. Ticks of
// every two seconds are not the same in processes whose clocks differ by one, unless somebody aligns them.
func clockJobs() (jobs []cronworker.Job) {
	for _, naive := range []bool{false, true} {
		for _, spec := range []string{second, every, "@every 2s"} {
			for _, length := range []time.Duration{brief, 3 * time.Second} {
				name := fmt.Sprintf("%s %v", spec, length)
				if naive {
					name += " naive"
				}
				jobs = append(jobs, cronworker.Job{
					Name: name, Spec: spec, Length: length, TTL: 2 * time.Second, Naive: naive,
				})
			}
		}
	}
	return jobs
}

// TestCronClocks runs five replicas with shifted clocks: undisturbed, and while they are stopped, killed and restarted.
func TestCronClocks(t *testing.T) {
	skipUnlessAsked(t)
	program := buildReplica(t)
	for name, test := range map[string]func(f *fleet){
		"undisturbed": func(f *fleet) { f.watch(*crons) },
		"disturbed": func(f *fleet) {
			n := &nemesis{fleet: f, rand: rand.New(rand.NewPCG(*seed, 0))}
			n.rage(*crons)
			f.t.Logf("%d times stopped, %d times killed, seed %d", n.stops, n.kills, *seed)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, program, testkit.Start(t), clockJobs()...)
			for _, name := range slices.Sorted(maps.Keys(clocks)) {
				f.join(name, clocks[name], 0)
			}
			f.await("the replicas to be up", func() bool { return len(f.of(cronworker.Up, "")) >= len(clocks) })
			from := f.now()
			test(f)
			to := f.now()
			f.finish()
			mustBeShifted(t, f)
			var table bytes.Buffer
			w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, columns)
			for _, job := range f.jobs {
				v := judge(f, job, from, to)
				fmt.Fprintln(w, v)
				if !job.Naive {
					v.check(t)
				} else if job.Length == brief && v.twice == 0 {
					t.Errorf("%s: no tick started twice: this test would not notice", job.Name)
				}
			}
			_ = w.Flush()
			t.Logf("%v, load %s\n%s", to.Sub(from).Round(time.Second), load(), table.String())
		})
	}
}

// load is the load of the machine, where it says so.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return string(bytes.TrimSpace(text))
}

// mustBeShifted checks that the clocks were what they were to be.
func mustBeShifted(t *testing.T, f *fleet) {
	t.Helper()
	for _, e := range f.of(cronworker.Up, "") {
		if off := e.Ahead - clocks[e.Replica]; off.Abs() > 900*time.Millisecond {
			t.Errorf("the clock of replica %s was %v ahead", e.Replica, e.Ahead)
		}
	}
}

// verdict is what became of the ticks of a job.
type verdict struct {
	job       string
	ticks     int // for which a replica was there all the time
	started   int
	twice     int // started more than once; these and what follows count other ticks too
	most      int // times that one started
	strays    int // started between the ticks
	overlaps  int
	stale     int // runs that their process was stopped in, until another one had followed
	unnoticed int // of these, those that took effect all the same
	// Ticks that did not start: during an earlier run, since their runner died or was stopped before it began, and for
	// no reason at all.
	skipped, died, missing int
}

const columns = "job\tticks\tstarted\tskipped\tclaimer died\tmissing\tstarted twice\tmost\tstrays\toverlaps\tstale\tunnoticed"

func (v verdict) String() string {
	return fmt.Sprintf("%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d", v.job, v.ticks, v.started, v.skipped, v.died,
		v.missing, v.twice, v.most, v.strays, v.overlaps, v.stale, v.unnoticed)
}

func (v verdict) check(t *testing.T) {
	t.Helper()
	if v.twice+v.strays+v.overlaps+v.unnoticed+v.missing > 0 {
		t.Errorf("%s: %d ticks started twice, %d strays, %d overlaps, %d stale writes were not refused, %d ticks missing",
			v.job, v.twice, v.strays, v.overlaps, v.unnoticed, v.missing)
	}
}

// periodOf returns the time from tick to tick, in seconds.
func periodOf(spec string) int64 {
	if spec == "@every 2s" {
		return 2
	}
	return 1
}

func judge(f *fleet, job cronworker.Job, from, to time.Time) verdict {
	f.t.Helper()
	s := storyOf(f.entries)
	v := verdict{job: job.Name}
	v.overlaps, v.stale, v.unnoticed = s.meetings(job.Name)
	starts := s.starts(job.Name)
	period := periodOf(job.Spec)
	for tick, n := range starts {
		v.most = max(v.most, n)
		if tick%period != 0 {
			v.strays++
		}
		if n > 1 {
			v.twice++
		}
	}
	outcomes := make(map[int64]cronlock.Outcome)
	if !job.Naive {
		runs, err := cronlock.Job(f.locks(), job.Name).History(f.t.Context())
		if err != nil {
			f.t.Fatal(err)
		}
		for _, r := range runs {
			outcomes[r.Tick.Unix()] = r.Outcome
		}
	}
	for tick := from.Unix(); tick < to.Unix(); tick++ {
		if tick%period != 0 || !s.covered(tick, clocks) {
			continue
		}
		v.ticks++
		switch outcome, claimed := outcomes[tick]; {
		case starts[tick] > 0:
			v.started++
		case outcome == cronlock.Skipped:
			v.skipped++
		case claimed:
			v.died++
		default:
			v.missing++
		}
	}
	return v
}
