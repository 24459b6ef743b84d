package round_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/lab/faults/history"
	"github.com/holdfast-go/holdfast/lab/faults/nemesis"
	"github.com/holdfast-go/holdfast/lab/faults/topology"
)

// aftermath is for how long after a promotion the former master may not have heard of it.
const aftermath = 5 * time.Second

// watch tells of replicas that become masters, until the context ends: on a busy machine servers are given up that the
// nemesis has not touched, and what they had not replicated is lost all the same.
func watch(ctx context.Context, d *topology.Deployment, log *history.Log) (wait func()) {
	var all sync.WaitGroup
	if d.Sentinel == nil && d.Cluster == nil {
		return all.Wait
	}
	loses := nemesis.Failover(d.Kind)
	for i := range d.Servers {
		all.Go(func() {
			for replica := int64(0); ctx.Err() == nil; time.Sleep(200 * time.Millisecond) {
				before := history.Now()
				reply, err := d.Admin(i).Do(ctx, "role").Slice()
				switch {
				case err != nil || len(reply) == 0:
				case reply[0] != "master":
					replica = before
				case replica > 0: // it was one then
					name := fmt.Sprint("promotion of server ", i+1)
					log.Say(history.Event{At: replica, Kind: history.Fault, Name: name, Loses: loses})
					log.Say(history.Event{At: history.Now() + int64(aftermath), Kind: history.Heal, Name: name})
					replica = 0
				}
			}
		})
	}
	return all.Wait
}
