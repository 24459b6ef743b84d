package redlock_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

var storm = flag.Duration("storm", 0, "how long servers of a Redlock are broken, at least; 0: each pair of them once")

// bid is one call of Lock under the storm and what came of it, by the clock of a server that never fails.
type bid struct {
	coretest.Section       // zero if the lock was not granted
	Asked            int64 // when the call began
	Overrun          time.Duration
	Err              string
}

// bidTime is how long each bidder waits for the lock.
const bidTime = 500 * time.Millisecond

// bidUntilTold takes the lock "name" over and over until the process's input ends. The last address is the referee's.
func bidUntilTold(addrs []string, say func(any), goroutines int, ttl time.Duration) error {
	var clients []redis.UniversalClient
	for _, addr := range addrs {
		rdb := redis.NewClient(&redis.Options{Addr: addr})
		defer rdb.Close()
		clients = append(clients, rdb)
	}
	last := len(clients) - 1
	locks, err := core.NewRedlock(clients[:last], core.WithTTL(ttl), core.WithNodeTimeout(bidTime/2))
	if err != nil {
		return err
	}
	defer locks.Close()
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		defer stop()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	var all sync.WaitGroup
	failed := make(chan error, goroutines)
	for range goroutines {
		all.Go(func() {
			for ctx.Err() == nil {
				b, err := makeBid(locks.Mutex("name"), clients[last])
				if err != nil {
					failed <- err
					return
				}
				say(b)
			}
		})
	}
	all.Wait()
	close(failed)
	return <-failed
}

// makeBid fails only if the referee does.
func makeBid(lock *core.Lock, referee redis.UniversalClient) (b bid, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), bidTime)
	defer cancel()
	now := func() int64 {
		t, failed := referee.Time(context.Background()).Result()
		err = errors.Join(err, failed)
		return t.UnixMicro()
	}
	b.Asked = now()
	deadline, _ := ctx.Deadline()
	lease, refused := lock.Lock(ctx)
	if refused != nil {
		b.Overrun, b.Err = time.Since(deadline), refused.Error()
		return b, err
	}
	b.Token, b.From = lease.Token(), now()
	time.Sleep(rand.N(5 * time.Millisecond)) // the work
	b.To = now()
	if !time.Now().Before(lease.ValidUntil()) {
		b.To = b.From // it has stopped in time, but the end of it is not known
	}
	_ = lease.Unlock(context.Background()) // it may have been lost with the servers
	time.Sleep(rand.N(2 * time.Millisecond))
	return b, err
}

// breakage is one way to take a server from its clients, and to give it back.
type breakage struct {
	name  string
	begin func(*stormy)
	end   func(*stormy)
}

// stormy is a server with a relay in front of it.
type stormy struct {
	*testkit.Server
	relay *testkit.Relay
}

var breakages = []breakage{
	{"killed", func(s *stormy) { s.Kill() }, func(s *stormy) { s.Restart() }},
	{"frozen", func(s *stormy) { s.Pause() }, func(s *stormy) { s.Resume() }},
	{"cut off", func(s *stormy) { s.relay.Drop(testkit.ToServer | testkit.ToClient) }, func(s *stormy) { s.relay.Heal() }},
	{"late", func(s *stormy) { s.relay.Hold(testkit.ToServer | testkit.ToClient) }, func(s *stormy) { s.relay.Heal() }},
}

// bidders are the processes and what they have said.
type bidders struct {
	workers []*coretest.Worker

	mu   sync.Mutex
	bids []bid
	won  int
	all  sync.WaitGroup
}

func (b *bidders) listen(t *testing.T, w *coretest.Worker) {
	for line := range w.Lines {
		var got bid
		if err := json.Unmarshal(line, &got); err != nil {
			t.Errorf("worker says %q: %v", line, err)
		}
		b.mu.Lock()
		b.bids = append(b.bids, got)
		if got.Token != 0 {
			b.won++
		}
		b.mu.Unlock()
	}
}

func (b *bidders) grants() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.won
}

// awaitGrants returns once there were so many more.
func (b *bidders) awaitGrants(t *testing.T, n int, while string) {
	t.Helper()
	defer b.tellIfFailed(t)
	before := b.grants()
	testkit.Eventually(t, coretest.Within, "grants "+while, func() bool { return b.grants() >= before+n })
}

// tellIfFailed logs what was said last.
func (b *bidders) tellIfFailed(t *testing.T) {
	if !t.Failed() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, got := range b.bids[max(0, len(b.bids)-40):] {
		t.Logf("%+v", got)
	}
}

// TestRedlockStorm lets four processes contend for a lock on five masters, of which any two at a time are killed,
// frozen, cut off, or made to hear and say everything late. No two processes may be inside at once, tokens must grow,
// and the lock must continue being granted. Then three at a time, which must end all grants until they are back.
//
// It is not parallel to other tests: all that the processes say passes relays in this one, and while others keep it
// busy, the servers seem to be late.
func TestRedlockStorm(t *testing.T) {
	var servers []*stormy
	var addrs []string
	for range 5 {
		s := testkit.Start(t, testkit.AOF())
		servers = append(servers, &stormy{s, s.Relay()})
		addrs = append(addrs, servers[len(servers)-1].relay.Addr())
	}
	referee := testkit.Start(t, testkit.TCP())
	order := fmt.Sprint("bid tcp ", strings.Join(append(addrs, referee.Addr()), ","), " ", 2, " ", int64(3*time.Second))
	crowd := &bidders{}
	for range 4 {
		w := coretest.StartWorker(t, order)
		crowd.workers = append(crowd.workers, w)
		crowd.all.Go(func() { crowd.listen(t, w) })
	}
	now := func() int64 { return referee.Client().Time(context.Background()).Val().UnixMicro() }
	crowd.awaitGrants(t, 20, "before the storm")
	began := time.Now()
	pairs, triples := 0, 0
	for pairs == 0 || time.Since(began) < *storm {
		for i := range servers {
			for j := range i {
				breakServers(t, crowd, servers[i], servers[j])
				pairs++
			}
		}
		o := breakMajority(t, crowd, servers, now)
		t.Logf("without a majority for %v: grants again after %v", o.lasted, o.recovery)
		triples++
	}
	for _, w := range crowd.workers {
		_ = w.Stdin.Close()
	}
	crowd.all.Wait()
	for _, w := range crowd.workers {
		if err := <-w.Ended; err != nil {
			t.Errorf("worker: %v", err)
		}
	}
	crowd.report(t)
	t.Logf("%d pairs and %d triples of servers broken in %v", pairs, triples, time.Since(began))
}

func breakServers(t *testing.T, crowd *bidders, broken ...*stormy) {
	t.Helper()
	var names []string
	var ends []func()
	for _, s := range broken {
		b := breakages[rand.IntN(len(breakages))]
		b.begin(s)
		names = append(names, b.name)
		ends = append(ends, func() { b.end(s) })
	}
	crowd.awaitGrants(t, 10, fmt.Sprint("while servers are ", names))
	for _, end := range ends {
		end()
	}
	crowd.awaitGrants(t, 5, fmt.Sprint("after servers were ", names))
}

// outage is a time without a majority.
type outage struct {
	lasted   time.Duration
	recovery time.Duration // from its end to the first grant
}

// breakMajority breaks three servers until every process has been refused, which must be all that happens.
func breakMajority(t *testing.T, crowd *bidders, servers []*stormy, now func() int64) outage {
	t.Helper()
	broken := slices.Clone(servers)
	rand.Shuffle(len(broken), func(i, j int) { broken[i], broken[j] = broken[j], broken[i] })
	broken = broken[:3]
	b := breakages[rand.IntN(len(breakages))]
	for _, s := range broken {
		b.begin(s)
	}
	from := now()
	crowd.mu.Lock()
	heard := len(crowd.bids)
	crowd.mu.Unlock()
	testkit.Eventually(t, coretest.Within, "bids without a majority to end", func() bool {
		crowd.mu.Lock()
		defer crowd.mu.Unlock()
		refused := 0
		for _, got := range crowd.bids[heard:] {
			if got.Asked > from && got.Err != "" {
				refused++
			}
		}
		return refused >= 8
	})
	to := now()
	for _, s := range broken {
		b.end(s)
	}
	crowd.awaitGrants(t, 5, fmt.Sprint("after three servers were ", b.name))
	crowd.mu.Lock()
	defer crowd.mu.Unlock()
	o := outage{lasted: time.Duration(to-from) * time.Microsecond, recovery: coretest.Within}
	for _, got := range crowd.bids {
		switch {
		case got.Token == 0:
		case got.Asked > from && got.From < to:
			t.Errorf("granted without a majority, %s: %+v", b.name, got)
		case got.From >= to:
			o.recovery = min(o.recovery, time.Duration(got.From-to)*time.Microsecond)
		}
	}
	return o
}

// report checks what all processes have said.
func (b *bidders) report(t *testing.T) {
	t.Helper()
	var sections []coretest.Section
	var overruns []time.Duration
	for _, got := range b.bids {
		if got.Token != 0 {
			sections = append(sections, got.Section)
		} else {
			overruns = append(overruns, got.Overrun)
		}
	}
	for _, violation := range coretest.Violations(sections) {
		t.Error(violation)
	}
	longest := time.Duration(0)
	for i := 1; i < len(sections); i++ { // sorted by now
		longest = max(longest, time.Duration(sections[i].From-sections[i-1].To)*time.Microsecond)
	}
	slices.Sort(overruns)
	if n := len(overruns); n > 0 {
		t.Logf("%d refusals, %v after their deadline at most, 99%% within %v", n, overruns[n-1], overruns[n*99/100])
	}
	t.Logf("%d grants, the longest time without one %v", len(sections), longest)
}
