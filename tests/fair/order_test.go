package fair_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

const (
	contestants = 8 // clients in a contest
	heldFor     = 2 * time.Millisecond
)

// contest is what came of letting waiters take one lock over and over.
type contest struct {
	waiters  int
	turns    []coretest.LocalWaiter // since all were in line
	commands float64                // sent by clients for one grant, without the signs of life
	took     time.Duration
}

// holdContest lasts until each of the waiters could have had so many turns.
func holdContest(t *testing.T, waiters, rounds int) contest {
	t.Helper()
	grants := waiters * rounds
	server := testkit.Start(t)
	locks := coretest.NewClient(t, server.Client(), core.WithTTL(coretest.Long))
	ledger := coretest.NewLedger(t, server.Client(), "name")
	held := coretest.MustLock(t, locks.Fair("name"))
	ctx, stop := context.WithCancel(context.Background())
	var taken atomic.Int64
	var all sync.WaitGroup
	for client := range contestants {
		lock := coretest.NewClient(t, server.Client(), ledger.Hooks()).Fair("name")
		for who := client; who < waiters; who += contestants {
			all.Go(func() {
				hold := func() { time.Sleep(heldFor); taken.Add(1) }
				for ledger.Pass(ctx, lock, coretest.LocalWaiter{Who: who, Write: true}, hold) == nil {
				}
			})
		}
	}
	defer all.Wait()
	defer stop()
	coretest.AwaitQueue(t, locks, "name", waiters)
	before, began := sentBy(server), time.Now()
	coretest.Unlock(t, held)
	testkit.Eventually(t, 9*coretest.Within, "all grants", func() bool { return taken.Load() >= int64(grants) })
	sent, counted, took := sentBy(server)-before, taken.Load(), time.Since(began)
	stop()
	all.Wait()
	beats := took.Seconds() * float64(contestants)
	return contest{
		waiters: waiters, turns: ledger.History(t)[:grants], took: took,
		commands: (float64(sent) - beats) / float64(counted),
	}
}

// sentBy returns how many commands clients have sent for locks; none of these is ever called by a script.
func sentBy(server *testkit.Server) (sent int64) {
	stats := server.CommandStats()
	for _, command := range []string{"evalsha", "eval", "subscribe", "unsubscribe", "ping"} {
		sent += stats[command].Calls
	}
	return sent
}

// jain returns Jain's index of what each got: 1 if all got the same, 1/n if one got everything.
func (c contest) jain() float64 {
	got := make([]float64, c.waiters)
	for _, turn := range c.turns {
		got[turn.Who]++
	}
	var sum, squares float64
	for _, x := range got {
		sum += x
		squares += x * x
	}
	return sum * sum / (float64(c.waiters) * squares)
}

// String lists the figures that depend on the machine, and so are not checked.
func (c contest) String() string {
	var waits, handoffs []time.Duration
	var held time.Duration
	for i, turn := range c.turns {
		waits = append(waits, turn.Entered.Sub(turn.Asked))
		held += turn.Left.Sub(turn.Entered)
		if i > 0 {
			handoffs = append(handoffs, turn.Entered.Sub(c.turns[i-1].Left))
		}
	}
	return fmt.Sprintf("%d waiters: %d grants in %v, utilisation %.0f%%, handoff p50 %v p99 %v, "+
		"wait p50 %v p99 %v max %v, Jain %.5f, %.2f commands per grant",
		c.waiters, len(c.turns), c.took, 100*held.Seconds()/c.took.Seconds(), coretest.Quantile(handoffs, 0.5),
		coretest.Quantile(handoffs, 0.99), coretest.Quantile(waits, 0.5), coretest.Quantile(waits, 0.99), coretest.Quantile(waits, 1), c.jain(), c.commands)
}

func checkContest(t *testing.T, c contest) {
	t.Helper()
	t.Log(c)
	for _, overtaker := range coretest.Overtakers(c.turns) {
		t.Error(overtaker)
	}
	// With fewer rounds the last one weighs too much, which some have not finished.
	if len(c.turns) >= 10*c.waiters && c.jain() < 0.99 {
		t.Errorf("Jain's index is %v", c.jain())
	}
	if c.commands > 8 {
		t.Errorf("%v commands per grant", c.commands)
	}
}

var contestTime = flag.Duration("contest", 0, "let the contests of TestFairness last so long, one after the other")

// TestFairness: all clients get the same, in the order of arrival, and it costs the same however many wait.
func TestFairness(t *testing.T) {
	t.Parallel()
	var contests [3]contest
	t.Run("contests", func(t *testing.T) {
		for i, c := range []struct{ waiters, rounds int }{{16, 40}, {64, 10}, {256, 3}} {
			if testing.Short() {
				c.rounds = max(1, c.rounds/3)
			}
			if *contestTime > 0 {
				c.rounds = int(*contestTime/heldFor) / c.waiters
			}
			t.Run(fmt.Sprint(c.waiters), func(t *testing.T) {
				if *contestTime == 0 {
					t.Parallel()
				}
				contests[i] = holdContest(t, c.waiters, c.rounds)
				checkContest(t, contests[i])
			})
		}
	})
	byCost := func(a, b contest) int { return cmp.Compare(a.commands, b.commands) }
	least, most := slices.MinFunc(contests[:], byCost), slices.MaxFunc(contests[:], byCost)
	if most.commands > 1.5*least.commands {
		t.Errorf("%v commands per grant with %d waiters, %v with %d",
			most.commands, most.waiters, least.commands, least.waiters)
	}
	server := testkit.Start(t)
	t.Logf("a bare PUBLISH is delivered in p50 %v", coretest.Quantile(deliveries(t, server), 0.5))
}

// deliveries measures the way of a message, from before it is sent until it is received.
func deliveries(t *testing.T, server *testkit.Server) (took []time.Duration) {
	t.Helper()
	ctx := context.Background()
	next := coretest.Subscribe(t, server.Client(), "channel")
	for rdb := server.Client(); len(took) < 200; {
		began := time.Now()
		rdb.Publish(ctx, "channel", "x")
		next()
		took = append(took, time.Since(began))
	}
	return took
}
