package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestElectionInCluster elects, observes and resigns for names all over a Cluster, as the user of docs/redis.md.
func TestElectionInCluster(t *testing.T) {
	t.Parallel()
	cluster := testkit.StartCluster(t, 3)
	lacksShards(t, cluster)
	rules := append(documentedRules(t, "A Redis user needs"), documentedRules(t, "In a Cluster it needs")...)
	for _, s := range cluster.Masters {
		setUser(t, s, rules)
	}
	connect := func() redis.UniversalClient {
		return cluster.Client(func(o *redis.ClusterOptions) { o.Username, o.Password = "locker", "secret" })
	}
	locks, other := newClient(t, connect()), newClient(t, connect())
	for i := range 6 {
		electEveryWay(t, fmt.Sprint("name", i), locks, other)
	}
	for _, s := range cluster.Masters {
		nothingDenied(t, s)
	}
}

// TestElectionOfMinimalUser does the same on one server.
func TestElectionOfMinimalUser(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	setUser(t, server, documentedRules(t, "A Redis user needs"))
	connect := func() redis.UniversalClient {
		return server.Client(func(o *redis.Options) { o.Username, o.Password = "locker", "secret" })
	}
	electEveryWay(t, "name", newClient(t, connect()), newClient(t, connect()))
	nothingDenied(t, server)
}

// electEveryWay elects two leaders one after the other, under the eyes of an observer.
func electEveryWay(t *testing.T, name string, locks, other *core.Client) {
	t.Helper()
	next := observe(t, other.Election(name))
	wantTold(t, next(), nil, "")
	first := mustCampaign(t, locks.Election(name, core.WithValue("a")))
	wantTold(t, next(), first, "a")
	waiting := campaignLater(t, other.Election(name, core.WithValue("c")))
	awaitQueue(t, locks, name, 1)
	proclaim(t, first, "b")
	wantTold(t, next(), first, "b")
	resign(t, first)
	second := awaitLead(t, waiting)
	wantTold(t, next(), second, "c")
	if second.Term() <= first.Term() {
		t.Errorf("%s: term %d came after %d", name, second.Term(), first.Term())
	}
	resign(t, second)
	wantTold(t, next(), nil, "")
}

// TestElectionAfterALossyFailover: the election is not known to the next master. The next term is greater all the same, the
// old leader is told, and no observer goes back.
func TestElectionAfterALossyFailover(t *testing.T) {
	t.Parallel()
	s := testkit.StartSentinel(t, testkit.DownAfter(time.Second))
	locks, other := newClient(t, s.Client(), core.WithTTL(15*time.Second)), newClient(t, s.Client())
	next := observe(t, other.Election("name"))
	wantTold(t, next(), nil, "")
	earlier := mustCampaign(t, locks.Election("name", core.WithValue("earlier")))
	wantTold(t, next(), earlier, "earlier")
	resign(t, earlier)
	wantTold(t, next(), nil, "")
	s.AwaitInSync()
	s.Servers[1].CutReplication()
	lost := mustCampaign(t, locks.Election("name", core.WithValue("lost")))
	wantTold(t, next(), lost, "lost")
	s.Servers[0].Kill()
	s.AwaitMaster(s.Servers[0])
	again := mustCampaign(t, other.Election("name", core.WithValue("again")))
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
	waitFor(t, lost.Context().Done(), "the old leader to be told")
	wantErr(t, lost.Proclaim(t.Context(), "too late"), core.ErrNotHeld)
	resign(t, again)
}
