package election_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

var elections = flag.Duration("elections", 0, "how long TestElectionAmongProcesses breaks leaders, at least a hundred of them")

// electionTTL is short, so that a minute has many elections.
const electionTTL = time.Second

// electorate is some processes that campaign in one election, each behind a relay of its own.
type electorate struct {
	t       *testing.T
	referee *referee
	members []*elector
	reading sync.WaitGroup
}

// elector is one candidate, which is another process after it was killed.
type elector struct {
	worker *coretest.Worker
	relay  *testkit.Relay
	number int
	lives  int
}

func newElectorate(t *testing.T, n int) *electorate {
	c := &electorate{t: t, referee: newReferee()}
	server := testkit.Start(t)
	for i := range n {
		m := &elector{relay: server.Relay(), number: i}
		c.members = append(c.members, m)
		c.start(m)
	}
	return c
}

func (c *electorate) start(m *elector) {
	m.lives++
	observer := fmt.Sprint(m.number, ".", m.lives)
	m.worker = coretest.StartWorker(c.t, fmt.Sprint("elect tcp ", m.relay.Addr(), " ", m.number, " ", int64(electionTTL)))
	lines := m.worker.Lines
	c.reading.Go(func() {
		for line := range lines {
			c.referee.hear(observer, line)
		}
	})
}

// signal sends a signal to a member.
func (c *electorate) signal(m *elector, s syscall.Signal) {
	if err := m.worker.Cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// leader returns the member that leads a term.
func (c *electorate) leader(term *reigned) *elector {
	for _, m := range c.members {
		if term.value == fmt.Sprint(m.number, "-", m.worker.Cmd.Process.Pid) {
			return m
		}
	}
	c.t.Fatalf("no member leads term %+v", term)
	return nil
}

// successor returns the next term after one.
func (c *electorate) successor(after int64) *reigned {
	c.t.Helper()
	testkit.Eventually(c.t, coretest.Within, "the next leader", func() bool {
		next := c.referee.newest()
		return next != nil && next.term > after
	})
	return c.referee.newest()
}

// troubles are what is done to a leader, and how it is undone after the next election.
var troubles = []struct {
	name string
	do   func(c *electorate, m *elector) (undo func())
}{
	{"killed", func(c *electorate, m *elector) func() {
		_ = m.worker.Cmd.Process.Kill()
		return func() { c.start(m) }
	}},
	{"stopped", func(c *electorate, m *elector) func() {
		c.signal(m, syscall.SIGSTOP)
		return func() { c.signal(m, syscall.SIGCONT) }
	}},
	{"cut off", func(c *electorate, m *elector) func() {
		m.relay.Drop(testkit.Both)
		return m.relay.Heal
	}},
	{"resigned", func(c *electorate, m *elector) func() {
		_, err := m.worker.Stdin.(io.Writer).Write([]byte{'r'})
		if err != nil {
			c.t.Error(err)
		}
		return func() {}
	}},
}

// finish ends all members, and waits for what they say.
func (c *electorate) finish() {
	for _, m := range c.members {
		m.worker.Finish(c.t)
	}
	c.reading.Wait()
}

// TestElectionAmongProcesses kills, stops and cuts off leaders among five processes, and lets them resign. With -elections
// it does that for so long, and prints figures.
func TestElectionAmongProcesses(t *testing.T) {
	if *elections == 0 {
		t.Parallel()
	}
	c := newElectorate(t, 5)
	random := rand.New(rand.NewPCG(1, 1))
	term := c.successor(0)
	vacancies := make(map[string][]time.Duration)
	began := time.Now()
	for n := 0; n < 2*len(troubles) || *elections > 0 && (n < 104 || time.Since(began) < *elections); n++ {
		trouble := troubles[n%len(troubles)]
		undo := trouble.do(c, c.leader(term))
		next := c.successor(term.term)
		vacancies[trouble.name] = append(vacancies[trouble.name], c.referee.vacancyBefore(next.term))
		undo()
		after := sinceBoot() + time.Duration(random.Int64N(int64(50*time.Millisecond)))
		testkit.Eventually(t, coretest.Within, "a moment of the term", func() bool { return c.referee.newest().last > after })
		term = c.referee.newest()
	}
	took := time.Since(began)
	c.finish()
	most := electionTTL + time.Second
	if *elections == 0 {
		most = coretest.Within // the machine may be busy
	}
	for _, violation := range c.referee.violations(most) {
		t.Error(violation)
	}
	told, of := c.referee.observed()
	if told*2 < of {
		t.Errorf("observers were told of %d changes of %d", told, of)
	}
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "the leader\ttimes\tnobody led for, least\tmedian\tmost")
	for _, trouble := range troubles {
		all := slices.Sorted(slices.Values(vacancies[trouble.name]))
		ms := func(d time.Duration) time.Duration { return d.Round(time.Millisecond / 10) }
		fmt.Fprintf(w, "%s\t%d\t%v\t%v\t%v\n", trouble.name, len(all), ms(all[0]), ms(all[len(all)/2]), ms(all[len(all)-1]))
	}
	_ = w.Flush()
	t.Logf("%d terms in %v with a TTL of %v; leaders that went on after a stop did so for %v at most; observers were told of %d changes of %d\n%s",
		len(c.referee.terms), took.Round(time.Second), electionTTL, c.referee.late.Round(time.Millisecond/10), told, of, table.String())
}

// TestElectionReferee: the referee finds each violation, and none in a good election.
func TestElectionReferee(t *testing.T) {
	t.Parallel()
	led := func(term int64, at ...time.Duration) (all []ballot) {
		for _, a := range at {
			all = append(all, ballot{ledKind, term, "v", a})
		}
		return all
	}
	for name, test := range map[string]struct {
		ballots []ballot
		want    int
	}{
		"good":                {slices.Concat(led(1, 10, 20), led(2, 30, 40), []ballot{{seenKind, 1, "v", 0}, {vacantKind, 1, "", 0}, {seenKind, 2, "v", 0}}), 0},
		"two leaders":         {slices.Concat(led(1, 10, 30), led(2, 29, 40)), 1},
		"term that sinks":     {slices.Concat(led(2, 10, 20), led(1, 30, 40)), 1},
		"nobody for too long": {slices.Concat(led(1, 10, 20), led(2, 121)), 1},
		"observer goes back":  {slices.Concat(led(1, 10), led(2, 20), []ballot{{seenKind, 2, "v", 0}, {seenKind, 1, "v", 0}}), 1},
		"wrong value":         {slices.Concat(led(1, 10), []ballot{{seenKind, 1, "w", 0}}), 1},
	} {
		r := newReferee()
		for _, b := range test.ballots {
			line, err := json.Marshal(b)
			if err != nil {
				t.Fatal(err)
			}
			r.hear("observer", line)
		}
		if got := r.violations(100); len(got) != test.want {
			t.Errorf("%s: %q, want %d violations", name, got, test.want)
		}
	}
}
