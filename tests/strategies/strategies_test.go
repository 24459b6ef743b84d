package strategies_test

import (
	"flag"
	"testing"

	lockconformance "github.com/holdfast-go/holdfast/tests/conformance/lock"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestConformance runs the suite on all pairs on a server by itself. It takes a part of it for a strategy that passes the
// whole suite with another rival.
func TestConformance(t *testing.T) {
	t.Parallel()
	for name, pair := range coretest.Pairs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := lockconformance.Run
			if pair.Again {
				run = lockconformance.RunBrief
			}
			run(t, pair.On(nil))
		})
	}
}

var allTopologies = flag.Bool("topologies", false, "run the conformance suite on all strategies on Sentinel and Cluster")

// TestTopologies runs the suite where replicas stand behind the servers and clients find their way by themselves. By
// default it takes two strategies for all, and the part of the suite that depends on the servers.
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
					run := lockconformance.RunBrief
					if *allTopologies {
						run = lockconformance.Run
					}
					run(t, pair.On(deployment))
				})
			}
		})
	}
}

// TestRedlockConformance runs the part of the suite that depends on the servers on five masters. TestConformanceOfMinimalUser
// runs the whole suite on three.
func TestRedlockConformance(t *testing.T) {
	t.Parallel()
	lockconformance.RunBrief(t, coretest.OnMasters(5))
}
