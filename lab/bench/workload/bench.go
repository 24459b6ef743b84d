// Package workload holds what is measured, one workload per file. Each lets its contestants take turns, round by round
// and in another order in each, so that what the machine does beside hits all of them.
package workload

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/lab/bench/contestant"
	"github.com/holdfast-go/holdfast/lab/bench/measure"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// Bench is what workloads run on and write into.
type Bench struct {
	Servers     []*testkit.Server
	Contestants []contestant.Contestant
	Book        *measure.Book
	Log         io.Writer

	PairRounds    int           // beside one that warms up
	PairTime      time.Duration // of one contestant at one concurrency in one round
	LoneRounds    int           // the same of one goroutine
	LoneTime      time.Duration
	ContestRounds int
	ContestTime   time.Duration
	LeaseTime     time.Duration // for how long the leases are held
	Leases        int
	Waiters       int // of the waiters and crowd workloads, the many
	Readers       int
}

func (b *Bench) addrs() []string {
	var addrs []string
	for _, s := range b.Servers {
		addrs = append(addrs, s.Addr())
	}
	return addrs
}

func (b *Bench) logf(format string, args ...any) { fmt.Fprintf(b.Log, format+"\n", args...) }

// player is a contestant that takes part in a workload, with its connections.
type player struct {
	contestant.Contestant
	number   int // names of locks have it, so that no contestant hears what another one says about the same name
	sessions []contestant.Session
}

// open connects those contestants that take part, each as so many processes would.
func (b *Bench) open(processes int, takesPart func(contestant.Contestant) bool) (players []player, closeAll func(), err error) {
	closeAll = func() {
		for _, p := range players {
			for _, s := range p.sessions {
				_ = s.Close() // of what nothing depends on any more
			}
		}
	}
	for _, c := range b.Contestants {
		if !takesPart(c) {
			continue
		}
		p := player{Contestant: c, number: 10 + len(players)}
		for range processes {
			s, err := c.Open(b.addrs()[:c.Servers])
			if err != nil {
				closeAll()
				return nil, nil, fmt.Errorf("%s: %w", c.Name, err)
			}
			p.sessions = append(p.sessions, s)
		}
		players = append(players, p)
	}
	return players, closeAll, nil
}

// turns calls do for all players in each round, in another order each time. Round 0 only warms up.
func turns(ctx context.Context, players []player, rounds int, do func(p player, round int) error) error {
	for round := range rounds + 1 {
		for _, i := range order(round, len(players)) {
			p := players[i]
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := do(p, round); err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
		}
	}
	return nil
}

// order returns who takes turns when in a round. Nobody always follows the same one: the scheduler may find two cores for
// a client and the server after some contestants, and leave them on one after others.
func order(round, players int) []int { return rand.New(rand.NewPCG(uint64(round), 0)).Perm(players) }
