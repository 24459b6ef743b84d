package election

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

const both = testkit.Both

// Play is one fault. It is the same for all contestants.
type Play struct {
	Name       string
	candidates int
	persistent bool // the server keeps its data in a restart
	run        func(context.Context, *group) (vacant time.Duration, err error)
}

// Plays returns all plays.
func Plays() []Play {
	return []Play{
		{Name: "renewals of the leader cut off", candidates: Size, run: cutOff},
		{Name: "reply to the winner lost", candidates: 2, run: lostWin},
		{Name: "reply to a resignation lost", candidates: Size, run: lostResignation},
		{Name: "resignation arrives in a later term of the same process", candidates: 2, run: repeatedResignation},
		{Name: "Redis restarts, with an append-only file", candidates: Size, persistent: true, run: restart},
		{Name: "Redis restarts empty", candidates: Size, run: restart},
	}
}

// Outcome is what a play has done to an election.
type Outcome struct {
	Two    int           // wins while another leader believed in itself
	TwoFor time.Duration // for how long two did, after the fault
	Back   int           // terms that were not greater than all before
	Vacant float64       // TTLs from the fault to the next leader; 0 if the leader did not change
}

// String is the cell of a table.
func (o Outcome) String() string {
	var parts []string
	if o.Two > 0 {
		parts = append(parts, fmt.Sprintf("**two leaders** for %.2f s", o.TwoFor.Seconds()))
	}
	if o.Back > 0 {
		parts = append(parts, "**terms go back**")
	}
	if o.Vacant > 0 {
		parts = append(parts, fmt.Sprintf("next leader after %.2f TTL", o.Vacant))
	}
	if len(parts) == 0 {
		return "–"
	}
	return strings.Join(parts, ", ")
}

// Worst returns the greatest of each figure.
func (o Outcome) Worst(p Outcome) Outcome {
	return Outcome{
		Two: max(o.Two, p.Two), TwoFor: max(o.TwoFor, p.TwoFor), Back: max(o.Back, p.Back), Vacant: max(o.Vacant, p.Vacant),
	}
}

// Run plays once, on a server of its own.
func (p Play) Run(ctx context.Context, t testing.TB, c Contestant, ttl time.Duration) (o Outcome, err error) {
	var options []testkit.Option
	if p.persistent {
		options = append(options, testkit.AOF())
	}
	g, err := newGroup(t, c, p.candidates, ttl, options...)
	if err != nil {
		return o, err
	}
	defer g.close()
	vacant, err := p.run(ctx, g)
	if err != nil {
		return o, fmt.Errorf("%s: %s: %w", c.Name, p.Name, err)
	}
	o.Vacant = vacant.Seconds() / ttl.Seconds()
	o.TwoFor = g.twoFor(20 * ttl)
	g.mu.Lock()
	defer g.mu.Unlock()
	o.Two, o.Back = g.two, g.back
	if o.Two == 0 {
		o.TwoFor = 0
	}
	return o, nil
}

// twoFor looks until there were not two leaders for two TTLs, and returns for how long it has seen two.
func (g *group) twoFor(most time.Duration) (two time.Duration) {
	began := time.Now()
	last, lastTwo := began, began
	for last.Sub(lastTwo) < 2*g.ttl && last.Sub(began) < most {
		seen := g.leaders() > 1
		time.Sleep(time.Millisecond)
		now := time.Now()
		if seen {
			two += now.Sub(last)
			lastTwo = now
		}
		last = now
	}
	return two
}

// cutOff swallows all that the leader sends and gets.
func cutOff(ctx context.Context, g *group) (time.Duration, error) {
	w, err := g.next(ctx, 1)
	if err != nil {
		return 0, err
	}
	if err := pause(ctx, g.ttl/2); err != nil { // after a renewal
		return 0, err
	}
	began := time.Now()
	g.members[w.who].relay.Drop(both)
	next, err := g.next(ctx, 2)
	if err != nil {
		return 0, err
	}
	return next.at.Sub(began), nil
}

// lostWin closes the connection in place of the reply by which the second candidate is elected. It does so twice: the
// first request of holdfast may be its subscription.
func lostWin(ctx context.Context, g *group) (time.Duration, error) {
	w, err := g.next(ctx, 1)
	if err != nil {
		return 0, err
	}
	// A waiter that has queued may be elected by a message. So the other one is absent until the leader has resigned.
	other := g.members[1-w.who].relay
	other.Drop(both)
	if err := pause(ctx, 3*g.ttl+placeTTL); err != nil { // until Redis has forgotten that it waits
		return 0, err
	}
	began, err := g.resignation(ctx, g.newest(w))
	if err != nil {
		return 0, err
	}
	other.Heal()
	other.LoseReplies(g.name, 2, testkit.Closed)
	next, err := g.next(ctx, 3)
	if err != nil {
		return 0, err
	}
	return next.at.Sub(began), lost(other)
}

// lost returns an error if the fault did not happen.
func lost(relay *testkit.Relay) error {
	if relay.LostReplies() == 0 {
		return errors.New("no reply was lost")
	}
	return nil
}

// placeTTL is for how long holdfast keeps the place of a candidate that is gone.
const placeTTL = 5 * time.Second

// lostResignation closes the connection in place of the reply to a resignation.
func lostResignation(ctx context.Context, g *group) (time.Duration, error) {
	w, err := g.next(ctx, 1)
	if err != nil {
		return 0, err
	}
	g.members[w.who].relay.LoseReplies(g.name, 1, testkit.Closed)
	began, err := g.resignation(ctx, w)
	if err != nil {
		return 0, err
	}
	next, err := g.next(ctx, 2)
	if err != nil {
		return 0, err
	}
	g.rejoin(w)
	return next.at.Sub(began), lost(g.members[w.who].relay)
}

// repeatedResignation keeps the first copy of a resignation until the same process leads again.
func repeatedResignation(ctx context.Context, g *group) (time.Duration, error) {
	first, err := g.next(ctx, 1)
	if err != nil {
		return 0, err
	}
	deliver := g.keepNext(g.members[first.who].relay)
	defer deliver()
	began, err := g.resignation(ctx, first)
	if err != nil {
		return 0, err
	}
	second, err := g.next(ctx, 2)
	if err != nil {
		return 0, err
	}
	g.rejoin(first)
	if _, err := g.resignation(ctx, second); err != nil {
		return 0, err
	}
	if _, err := g.next(ctx, 3); err != nil {
		return 0, err
	}
	g.rejoin(second)
	if !deliver() {
		return 0, errors.New("no resignation was kept")
	}
	return second.at.Sub(began), nil
}

// keepNext keeps the next request that names the election, and its connection, until deliver is called. That returns false if
// there was none.
func (g *group) keepNext(relay *testkit.Relay) (deliver func() bool) {
	var found atomic.Bool
	kept := make(chan struct{})
	relay.OnRequest(func(request []byte) {
		if bytes.Contains(request, []byte(g.name)) && found.CompareAndSwap(false, true) {
			<-kept
		}
	})
	return sync.OnceValue(func() bool {
		close(kept)
		return found.Load()
	})
}

// restart kills the server. A leader that it knows again stays.
func restart(ctx context.Context, g *group) (time.Duration, error) {
	if _, err := g.next(ctx, 1); err != nil {
		return 0, err
	}
	if err := pause(ctx, g.ttl/10); err != nil {
		return 0, err
	}
	g.server.Restart()
	return 0, nil
}
