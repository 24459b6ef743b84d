package election

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

const (
	// lookInterval is how often a member looks whether it still leads.
	lookInterval = time.Millisecond
	// patience is for what must happen, however slow the machine.
	patience = 15 * time.Second
)

// group is the candidates of one election, each with a relay of its own before one server.
type group struct {
	ttl     time.Duration
	name    string
	server  *testkit.Server
	members []*member
	wins    chan *win
	stop    context.CancelFunc
	running sync.WaitGroup

	mu    sync.Mutex // guards those below
	leads []*win     // all that were won
	two   int        // wins while another leader believed in itself
	back  int        // wins with a term that was not greater than all before
}

// member is one process.
type member struct {
	candidate Candidate
	relay     *testkit.Relay
	resign    chan context.Context
	resigned  chan struct{}
	rejoin    chan struct{} // lets it campaign again after a resignation
}

// win is the beginning of a lead.
type win struct {
	who  int
	lead Lead
	at   time.Time
}

func newGroup(t testing.TB, c Contestant, size int, ttl time.Duration, options ...testkit.Option) (*group, error) {
	server := testkit.Start(t, append(options, testkit.TCP())...)
	g := &group{ttl: ttl, name: "leader", server: server, wins: make(chan *win, 1024)}
	for range size {
		relay := server.Relay()
		candidate, err := c.Open(Config{Addr: relay.Addr(), Name: g.name, TTL: ttl})
		if err != nil {
			g.close()
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
		g.members = append(g.members, &member{
			candidate, relay, make(chan context.Context), make(chan struct{}, 1), make(chan struct{}, 1),
		})
	}
	var ctx context.Context
	ctx, g.stop = context.WithCancel(context.Background())
	for who := range g.members {
		g.running.Go(func() { g.run(ctx, who) })
	}
	return g, nil
}

// close ends all candidates. Their relays are healed first, so that nothing waits for an answer.
func (g *group) close() {
	if g.stop != nil {
		g.stop()
	}
	for _, m := range g.members {
		m.relay.OnRequest(nil)
		m.relay.Heal()
	}
	g.running.Wait()
	for _, m := range g.members {
		_ = m.candidate.Close() // nothing depends on it any more
	}
}

// run campaigns and leads, again and again.
func (g *group) run(ctx context.Context, who int) {
	m := g.members[who]
	for ctx.Err() == nil {
		lead, err := m.candidate.Campaign(ctx)
		if err != nil {
			return // ctx has ended
		}
		g.won(&win{who, lead, time.Now()})
		if !m.leadUntilTheEnd(ctx, lead) {
			continue
		}
		select {
		case <-m.rejoin:
		case <-ctx.Done():
		}
	}
}

// leadUntilTheEnd returns true after a resignation, and false after a loss.
func (m *member) leadUntilTheEnd(ctx context.Context, lead Lead) (resigned bool) {
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	for {
		select {
		case limit := <-m.resign:
			_ = lead.Resign(limit) // the next win tells what came of it
			m.resigned <- struct{}{}
			return true
		case <-look.C:
			if !lead.Valid() {
				return false
			}
		case <-ctx.Done():
			_ = lead.Resign(context.WithoutCancel(ctx))
			return false
		}
	}
}

// won compares a new leader with those before. No count is too high, because a leader that won before and still considers
// itself the leader after this win led at the moment of this win.
func (g *group) won(w *win) {
	g.mu.Lock()
	defer g.mu.Unlock()
	beside, back := false, false
	for _, before := range g.leads {
		beside = beside || before.lead.Valid()
		back = back || before.lead.Term() >= w.lead.Term()
	}
	if beside {
		g.two++
	}
	if back {
		g.back++
	}
	g.leads = append(g.leads, w)
	g.wins <- w
}

// leaders returns how many believe in themselves now.
func (g *group) leaders() (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, w := range g.leads {
		if w.lead.Valid() {
			n++
		}
	}
	return n
}

// next waits for a leader, for so many TTLs at most.
func (g *group) next(ctx context.Context, ttls int) (*win, error) {
	select {
	case w := <-g.wins:
		return w, nil
	case <-time.After(time.Duration(ttls)*g.ttl + patience):
		return nil, fmt.Errorf("no leader within %d TTLs and %v", ttls, patience)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// newest returns the present leader, given the leader of the last win that was seen. It may be another one: on a busy machine a
// leader can lose its leadership.
func (g *group) newest(w *win) *win {
	for {
		select {
		case w = <-g.wins:
		default:
			return w
		}
	}
}

// resignation lets a leader resign, and returns when it began. The leader campaigns again when rejoin is called.
func (g *group) resignation(ctx context.Context, w *win) (time.Time, error) {
	m := g.members[w.who]
	began := time.Now()
	select {
	case m.resign <- ctx:
		<-m.resigned
		return began, nil
	case <-time.After(patience):
		return began, errors.New("the leader has lost its lead before it could resign")
	}
}

func (g *group) rejoin(w *win) { g.members[w.who].rejoin <- struct{}{} }
