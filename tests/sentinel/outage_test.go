package sentinel_test

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

var outages = flag.Int("outages", 0, "how often TestOutages lets each kind of outage happen")

// TestOutages measures how soon the locks of a slot can be had again after its master was killed or frozen, handed over
// to its replica, or gave the slot away; with the options that go-redis has by itself.
func TestOutages(t *testing.T) {
	if *outages == 0 {
		t.Skip("this takes minutes; ask for it with -outages")
	}
	for what, fault := range map[string]func(*stage) time.Time{
		"killed": func(s *stage) time.Time { return s.crash((*testkit.Server).Kill, (*testkit.Server).Restart) },
		"frozen": func(s *stage) time.Time { return s.crash((*testkit.Server).Pause, resumeLate) },
		"handover": func(s *stage) time.Time {
			s.cluster.Failover(s.replica(s.cluster.Owner(s.slot)))
			return time.Now()
		},
		"migration": func(s *stage) time.Time {
			coretest.AwaitEpochs(s, s.cluster)
			m := s.cluster.BeginMigration(s.slot, s.otherMaster())
			time.Sleep(3 * time.Second)
			m.End()
			return time.Now()
		},
	} {
		t.Run(what, func(t *testing.T) { newStage(t).repeat(fault) })
	}
}

// resumeLate lets a frozen master continue when all clients have had the time to learn of its successor. Before that, they
// would believe what it grants in the moment until it learns itself.
func resumeLate(s *testkit.Server) {
	time.Sleep(time.Second)
	s.Resume()
}

// stage is a Cluster in one slot of which locks are held and contended for.
type stage struct {
	*testing.T
	cluster *testkit.Cluster
	slot    int
	clients []*core.Client
	names   int // given so far

	victim *testkit.Server // that does not answer now
	mend   func(*testkit.Server)
}

const (
	stageTTL  = 20 * time.Second
	stageDown = 2 * time.Second
)

func newStage(t *testing.T) *stage {
	s := &stage{T: t, cluster: testkit.StartCluster(t, 3, testkit.Replicas(1), testkit.DownAfter(stageDown))}
	s.slot = s.cluster.Slot("{o}")
	for range 3 {
		s.clients = append(s.clients, coretest.NewClient(t, s.cluster.Client(), core.WithTTL(stageTTL)))
	}
	return s
}

// name returns a new one, in the slot.
func (s *stage) name() string {
	s.names++
	return fmt.Sprint("{o}:", s.names)
}

// hold takes locks of all strategies.
func (s *stage) hold() (held []*core.Lease) {
	s.Helper()
	for _, c := range s.clients {
		for _, lock := range coretest.Strategies(c) {
			held = append(held, coretest.MustLock(s, lock(s.name())))
		}
	}
	return held
}

// contested returns locks for rivals: each name for all clients.
func (s *stage) contested() (locks []*core.Lock) {
	for range 3 {
		mutex, fair := s.name(), s.name()
		for _, c := range s.clients {
			locks = append(locks, c.Mutex(mutex), c.Fair(fair))
		}
	}
	return locks
}

// repeat lets the same thing happen again and again, and logs what came of it. The fault returns when the slot was served
// again, as far as the servers go.
func (s *stage) repeat(fault func(*stage) time.Time) {
	s.Helper()
	held := s.hold()
	r := coretest.Contend(s, s.contested()...)
	var after, gaps []time.Duration
	var sent, asked []int64
	for range *outages {
		s.calm(r, held)
		before := s.stats()
		began := time.Now()
		served := fault(s)
		testkit.Eventually(s, 3*coretest.Within, "a grant", func() bool { return len(r.Grants(served)) > 0 })
		commands, questions := s.since(before)
		sent, asked = append(sent, commands), append(asked, questions)
		after = append(after, r.Grants(served)[0].Sub(served))
		gaps = append(gaps, longest(r.Grants(began.Add(-time.Second))))
		if s.victim != nil {
			s.mend(s.victim)
			s.victim = nil
		}
	}
	s.calm(r, held)
	r.End()
	s.Logf("%d times: longest gap between grants p50 %v max %v; first grant after it was served again p50 %v max %v; "+
		"meanwhile p50 %d commands and %d questions for slots", *outages,
		coretest.Quantile(gaps, 0.5), coretest.Quantile(gaps, 1), coretest.Quantile(after, 0.5), coretest.Quantile(after, 1), median(sent), median(asked))
	s.verdict(r, held)
}

// calm returns once all servers are in sync and will vote again, all leases have much time left, and locks are granted.
func (s *stage) calm(r *coretest.Rivals, held []*core.Lease) {
	s.Helper()
	for _, server := range s.cluster.Servers() {
		testkit.Eventually(s, 3*coretest.Within, "a server to have its place again", func() bool {
			return server.Info("replication", "role") == "master" ||
				server.Info("replication", "master_link_status") == "up"
		})
	}
	s.replica(s.cluster.Owner(s.slot)).AwaitInSync(s.cluster.Owner(s.slot))
	time.Sleep(2 * stageDown)
	coretest.AwaitRenewed(s, held, stageTTL*6/10)
	now := time.Now()
	testkit.Eventually(s, coretest.Within, "locks to be granted", func() bool { return len(r.Grants(now)) > 100 })
}

// verdict logs what should not have been.
func (s *stage) verdict(r *coretest.Rivals, held []*core.Lease) {
	grants, overlaps, tokens, lost := 0, 0, 0, 0
	for _, sections := range r.Sections {
		grants += len(sections)
		for _, v := range coretest.Violations(sections) {
			if strings.HasPrefix(v, "token") {
				tokens++
			} else {
				overlaps++
			}
		}
	}
	for _, l := range held {
		if l.Context().Err() != nil {
			lost++
		}
		_ = l.Unlock(context.Background())
	}
	s.Logf("%d grants: %d overlaps, %d tokens that did not grow, %d leases of a moment lost; %d of %d leases that were "+
		"held all along lost; errors %v", grants, overlaps, tokens, r.Lost, lost, len(held), r.Failed)
}

// crash takes the master away and returns when its replica was promoted.
func (s *stage) crash(fault, mend func(*testkit.Server)) time.Time {
	s.Helper()
	s.victim, s.mend = s.cluster.Owner(s.slot), mend
	replica := s.replica(s.victim)
	fault(s.victim)
	testkit.Eventually(s, 3*coretest.Within, "the replica to be promoted", func() bool {
		return replica.Info("replication", "role") == "master"
	})
	return time.Now()
}

// replica returns the replica of a master.
func (s *stage) replica(master *testkit.Server) *testkit.Server {
	s.Helper()
	for _, server := range s.cluster.Servers() {
		if server.Info("replication", "role") == "slave" &&
			server.Info("replication", "master_port") == fmt.Sprint(master.Port()) {
			return server
		}
	}
	s.Fatal("no replica")
	return nil
}

// otherMaster returns one to which the slot does not belong.
func (s *stage) otherMaster() *testkit.Server {
	s.Helper()
	owner := s.cluster.Owner(s.slot)
	for _, server := range s.cluster.Servers() {
		if server != owner && server.Info("replication", "role") == "master" {
			return server
		}
	}
	s.Fatal("no other master")
	return nil
}

// stats returns the statistics of all servers that answer.
func (s *stage) stats() map[*testkit.Server]map[string]testkit.Stat {
	s.Helper()
	stats := make(map[*testkit.Server]map[string]testkit.Stat)
	for _, server := range s.cluster.Servers() {
		if server != s.victim {
			stats[server] = server.CommandStats()
		}
	}
	return stats
}

// since returns how many commands of locks, and questions for slots, the servers got that answer.
func (s *stage) since(before map[*testkit.Server]map[string]testkit.Stat) (commands, questions int64) {
	s.Helper()
	for server, now := range s.stats() {
		for _, command := range []string{"evalsha", "eval", "ssubscribe"} {
			then := before[server][command]
			commands += now[command].Calls + now[command].Rejected - then.Calls - then.Rejected
		}
		questions += now["cluster|slots"].Calls - before[server]["cluster|slots"].Calls
	}
	return commands, questions
}
