package cronlock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestWrongClientOpensNothing: the client of one server leads to a Cluster, or to a replica. No job runs without its lock or its
// tick.
func TestWrongClientOpensNothing(t *testing.T) {
	t.Parallel()
	cluster := testkit.StartCluster(t, 3)
	master, replica := testkit.Start(t, testkit.TCP()), testkit.Start(t)
	replica.ReplicaOf(master.Addr())
	for name, server := range map[string]*testkit.Server{"Cluster": cluster.Masters[0], "Replica": replica} {
		t.Run(name, func(t *testing.T) {
			locks := newClient(t, server.Client())
			refused := 0
			for i := range 12 {
				job := fmt.Sprint("job", i)
				ran, skipped := 0, []cronlock.Skip(nil)
				exclusive := cronlock.Exclusive(locks.Mutex, job, cronlock.FailOpen(), cronlock.WithLogger(quiet),
					cronlock.WithHooks(cronlock.Hooks{Skipped: func(s cronlock.Skip) { skipped = append(skipped, s) }}))
				exclusive(cron.FuncJob(func() {
					ran++
					if _, err := newClient(t, cluster.Client()).Mutex("cron:" + job).TryLock(t.Context()); err == nil && name == "Cluster" {
						t.Error("the job runs without its lock")
					}
				})).Run()
				if ran == 0 && (len(skipped) != 1 || skipped[0].Reason != cronlock.Refused) {
					t.Errorf("skipped: %v", skipped)
				}
				refused += len(skipped)
				if name == "Replica" && ran > 0 {
					t.Error("the job ran although no lock can be granted")
				}
			}
			if refused == 0 {
				t.Error("nothing was refused")
			}
		})
	}
	t.Run("Tick", func(t *testing.T) {
		r := newReplica(t, newClient(t, replica.Client(), core.WithLogger(nil)), idle, cronlock.FailOpen(), cronlock.WithStartDeadline(time.Hour))
		r.fire(time.Now()) // at once, not after the deadline
		r.expect(t, 0, cronlock.Refused)
	})
}
