package strategies_test

import (
	"flag"
	"testing"

	lockconformance "github.com/holdfast-go/holdfast/tests/conformance/lock"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestConformance runs the suite on all pairs on a server by itself.
func TestConformance(t *testing.T) {
	t.Parallel()
	for name, pair := range coretest.Pairs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lockconformance.Run(t, pair.On(nil))
		})
	}
}

var allTopologies = flag.Bool("topologies", false, "run the conformance suite on all strategies on Sentinel and Cluster")

// TestTopologies runs the suite where replicas stand behind the servers and clients find their way by themselves. By
// default it takes two strategies for all.
func TestTopologies(t *testing.T) {
	t.Parallel()
	for name, topology := range map[string]struct {
		start  func(testing.TB) *lockconformance.Deployment
		sample string // the pair that is run without -topologies
	}{
		"Sentinel": {lockconformance.Sentinel, "Mutex"}, "Cluster": {lockconformance.Cluster, "ReadAndWrite"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			deployment := topology.start(t)
			for name, pair := range coretest.Pairs {
				if !*allTopologies && name != topology.sample {
					continue
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					lockconformance.Run(t, pair.On(deployment))
				})
			}
		})
	}
}

// TestRedlockConformance runs the suite on five masters.
func TestRedlockConformance(t *testing.T) {
	t.Parallel()
	lockconformance.Run(t, coretest.OnMasters(5))
}
