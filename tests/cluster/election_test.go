package cluster_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestElectionInCluster elects, observes and resigns for names all over a Cluster, as the user of docs/keys-and-rights.md.
func TestElectionInCluster(t *testing.T) {
	t.Parallel()
	cluster := testkit.StartCluster(t, 3)
	coretest.LacksShards(t, cluster)
	rules := append(coretest.DocumentedRules(t, "A Redis user needs"), coretest.DocumentedRules(t, "In a Cluster it needs")...)
	for _, s := range cluster.Masters {
		coretest.SetUser(t, s, rules)
	}
	connect := func() redis.UniversalClient {
		return cluster.Client(func(o *redis.ClusterOptions) { o.Username, o.Password = "locker", "secret" })
	}
	locks, other := coretest.NewClient(t, connect()), coretest.NewClient(t, connect())
	for i := range 6 {
		electEveryWay(t, fmt.Sprint("name", i), locks, other)
	}
	for _, s := range cluster.Masters {
		coretest.NothingDenied(t, s)
	}
}

// TestElectionOfMinimalUser does the same on one server.
func TestElectionOfMinimalUser(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	coretest.SetUser(t, server, coretest.DocumentedRules(t, "A Redis user needs"))
	connect := func() redis.UniversalClient {
		return server.Client(func(o *redis.Options) { o.Username, o.Password = "locker", "secret" })
	}
	electEveryWay(t, "name", coretest.NewClient(t, connect()), coretest.NewClient(t, connect()))
	coretest.NothingDenied(t, server)
}

// electEveryWay elects two leaders one after the other, under the eyes of an observer.
func electEveryWay(t *testing.T, name string, locks, other *core.Client) {
	t.Helper()
	next := coretest.Observe(t, other.Election(name))
	coretest.WantTold(t, next(), nil, "")
	first := coretest.MustCampaign(t, locks.Election(name, core.WithValue("a")))
	coretest.WantTold(t, next(), first, "a")
	waiting := coretest.CampaignLater(t, other.Election(name, core.WithValue("c")))
	coretest.AwaitQueue(t, locks, name, 1)
	coretest.Proclaim(t, first, "b")
	coretest.WantTold(t, next(), first, "b")
	coretest.Resign(t, first)
	second := coretest.AwaitLead(t, waiting)
	coretest.WantTold(t, next(), second, "c")
	if second.Term() <= first.Term() {
		t.Errorf("%s: term %d came after %d", name, second.Term(), first.Term())
	}
	coretest.Resign(t, second)
	coretest.WantTold(t, next(), nil, "")
}

// TestElectionAfterALossyFailover: the election is not known to the next master. The next term is greater all the same, the
// old leader is told, and no observer goes back.
func TestElectionAfterALossyFailover(t *testing.T) {
	t.Parallel()
	s := testkit.StartSentinel(t, testkit.DownAfter(time.Second))
	locks, other := coretest.NewClient(t, s.Client(), core.WithTTL(15*time.Second)), coretest.NewClient(t, s.Client())
	next := coretest.Observe(t, other.Election("name"))
	coretest.WantTold(t, next(), nil, "")
	earlier := coretest.MustCampaign(t, locks.Election("name", core.WithValue("earlier")))
	coretest.WantTold(t, next(), earlier, "earlier")
	coretest.Resign(t, earlier)
	coretest.WantTold(t, next(), nil, "")
	s.AwaitInSync()
	s.Servers[1].CutReplication()
	lost := coretest.MustCampaign(t, locks.Election("name", core.WithValue("lost")))
	coretest.WantTold(t, next(), lost, "lost")
	s.Servers[0].Kill()
	s.AwaitMaster(s.Servers[0])
	again := coretest.MustCampaign(t, other.Election("name", core.WithValue("again")))
	if again.Term() <= lost.Term() {
		t.Errorf("term %d came after %d", again.Term(), lost.Term())
	}
	for last := lost.Term(); ; {
		l := next()
		if l.Term < last {
			t.Errorf("the observer went back from %d to %d", last, l.Term)
		}
		if last = l.Term; l.Owner != "" && l.Term == again.Term() {
			break
		}
	}
	coretest.WaitFor(t, lost.Context().Done(), "the old leader to be told")
	coretest.WantErr(t, lost.Proclaim(t.Context(), "too late"), core.ErrNotHeld)
	coretest.Resign(t, again)
}
