//go:build unix

package cronworker_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/tests/storms/cronworker"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

const (
	rounds    = 10
	longLease = 2 * time.Second
)

// TestCronFaults breaks runners and Redis over and over, and tells how long that costs.
func TestCronFaults(t *testing.T) {
	skipUnlessAsked(t)
	failover := cronworker.Job{
		Name: "job", Spec: "@every 5s", Length: 1500 * time.Millisecond, TTL: longLease, Attempts: 2,
	}
	often := failover
	often.Spec = every
	t.Run("killed", func(t *testing.T) {
		once := cronworker.Job{Name: "job", Spec: every, Length: 3 * time.Second, TTL: longLease}
		f := newFleet(t, "", testkit.Start(t), once).joined(0, 0, 0)
		var after []time.Duration
		for range rounds {
			got := killRunner(f, "job", false)
			after = append(after, got.after)
			mustBeLost(t, f, got.lost)
		}
		f.finish()
		mustNotMeet(t, f, "job", 1)
		t.Logf("%d killed, all recorded as lost; next run after %s; load %s", rounds, spread(after), load())
	})
	for name, job := range map[string]cronworker.Job{
		"killed with failover": failover, "killed with failover each second": often,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, "", testkit.Start(t), job).joined(0, 0, 0)
			var after []time.Duration
			for range rounds {
				got := killRunner(f, "job", true)
				mustFollow(t, got)
				after = append(after, got.after)
			}
			f.finish()
			mustNotMeet(t, f, "job", 2)
			t.Logf("%d killed; run again after %s; load %s", rounds, spread(after), load())
		})
	}
	t.Run("stopped with failover", func(t *testing.T) {
		job := failover
		job.Spec, job.Length = "@every 7s", 4*time.Second // it is still at work when it continues
		f := newFleet(t, "", testkit.Start(t), job).joined(0, 0, 0)
		var after []time.Duration
		over, refused := 0, 0
		for range rounds {
			got, end := stopRunner(f, "job")
			mustFollow(t, got)
			after = append(after, got.after)
			if end.Over {
				over++
			}
			if end.Refused {
				refused++
			}
		}
		f.finish()
		mustNotMeet(t, f, "job", 2)
		t.Logf("%d stopped; run again after %s; contexts over %d, writes refused %d; load %s", rounds, spread(after), over,
			refused, load())
	})
}

// TestCronOutages takes Redis away over and over, and tells what became of the ticks.
func TestCronOutages(t *testing.T) {
	skipUnlessAsked(t)
	random := rand.New(rand.NewPCG(*seed, 1))
	for name, test := range map[string]func(f *fleet){
		"restarted": func(f *fleet) {
			for range rounds {
				restart(f, time.Duration(random.Int64N(int64(3*time.Second))))
			}
		},
		"frozen": func(f *fleet) {
			for range 3 {
				freeze(f, 5*time.Second)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			jobs := append(patientAndNot(), cronworker.Job{Name: "long", Spec: every, Length: 3 * time.Second, TTL: longLease})
			f := newFleet(t, "", testkit.Start(t, testkit.AOF()), jobs...).joined(0, 0, 0)
			test(f)
			f.finish()
			for _, job := range jobs {
				mustNotMeet(t, f, job.Name, 1)
				t.Logf("%-8s %s", job.Name, ticksOf(f, job.Name))
			}
			t.Logf("load %s", load())
		})
	}
}

// ticksOf tells what the replicas have told of all ticks of a job: whether each replica told of each one, and why they
// did not run.
func ticksOf(f *fleet, job string) string {
	told := make(map[string]map[int64]int)
	reasons := make(map[string]int)
	started := make(map[int64]bool)
	for _, e := range f.entries {
		if e.Job != job || e.Kind != cronworker.Begin && e.Kind != cronworker.Skip {
			continue
		}
		if told[e.Replica] == nil {
			told[e.Replica] = make(map[int64]int)
		}
		told[e.Replica][e.Tick]++
		if e.Kind == cronworker.Begin {
			started[e.Tick] = true
		} else {
			reasons[e.Reason]++
		}
	}
	all, untold := 0, 0
	for _, ticks := range told {
		first, last := bounds(ticks)
		all = max(all, int(last-first+1))
		for tick := first; tick <= last; tick++ {
			if ticks[tick] == 0 {
				untold++
			}
		}
	}
	return fmt.Sprintf("%d ticks, %d started; told by the replicas: %v, nothing of %d", all, len(started), reasons, untold)
}

func bounds(ticks map[int64]int) (first, last int64) {
	for tick := range ticks {
		if first == 0 || tick < first {
			first = tick
		}
		last = max(last, tick)
	}
	return first, last
}

// spread tells the least, the middle and the greatest.
func spread(all []time.Duration) string {
	slices.Sort(all)
	ms := func(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
	return fmt.Sprintf("%v, %v, %v (least, median, most)", ms(all[0]), ms(all[len(all)/2]), ms(all[len(all)-1]))
}
