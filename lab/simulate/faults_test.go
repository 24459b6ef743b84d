//go:build holdfast_simulation

package simulate_test

import (
	"context"
	"time"
)

// fault is one thing to break. begin returns what undoes it, nil if there is nothing to undo.
type fault struct {
	row   int
	name  string
	loses string // why one server may forget locks by it, see [history.Event]
	on    func(n *nemesis) bool
	begin func(n *nemesis) (heal func())
}

var faults = []fault{
	{1, "replies lost", "", nil, broken(state{dropBack: true})},
	{3, "requests lost", "", nil, broken(state{dropOut: true})},
	{4, "requests arrive late", "", nil, broken(state{holdOut: true})},
	{9, "slow link", "", nil, slow},
	{10, "silent blackhole", "", nil, broken(state{dropOut: true, dropBack: true})},
	{10, "connections cut", "", nil, cut},
	{14, "connections refused", "", nil, refuse},
	{17, "client gone", "", nil, crash},
	{25, "killed and restarted, without persistence", "restart without persistence", forgetting, restart},
	{28, "server refuses", "", nil, refusing},
	{29, "scripts forgotten", "", nil, forgetScripts},
	{34, "flushed", "FLUSHALL", forgetting, atOnce((*server).flush)},
	{38, "server's clock put forward", clockForward, resetting, forward},
	{39, "server's clock set back", "", setting, back},
	{54, "server's clock slewed", "", nil, slew},
}

// clockForward is the reason for what a step of the clock makes a server forget.
const clockForward = "clock put forward"

// forgetting tells whether servers may forget now: of a Redlock a minority may.
func forgetting(n *nemesis) bool { return n.kind.forgets && n.expendable() }

// setting tells whether clocks may be set, resetting whether locks may be forgotten by that.
func setting(n *nemesis) bool { return n.kind.clocks }

func resetting(n *nemesis) bool { return n.kind.clocks && n.expendable() }

// expendable tells whether all locks outlive what the weak servers lose, or the world does without that.
func (n *nemesis) expendable() bool {
	return !n.kind.redlock() || len(n.weak) <= n.kind.minority() && n.outlived()
}

// some chooses clients: one, or now and then all.
func (n *nemesis) some() []*client {
	if n.dice(3) == 0 {
		return n.clients
	}
	i := n.dice(len(n.clients))
	return n.clients[i : i+1]
}

// victims chooses among the weak servers: one, or now and then all.
func (n *nemesis) victims() []*server {
	if n.dice(3) == 0 {
		return n.weak
	}
	i := n.dice(len(n.weak))
	return n.weak[i : i+1]
}

// links chooses the links of some clients to some servers.
func (n *nemesis) links() (chosen []*link) {
	victims := n.victims()
	for _, c := range n.some() {
		for _, s := range victims {
			chosen = append(chosen, c.links[s.number])
		}
	}
	return chosen
}

func broken(s state) func(n *nemesis) func() {
	return func(n *nemesis) func() {
		chosen := n.links()
		for _, l := range chosen {
			l.set(s)
		}
		return func() {
			for _, l := range chosen {
				l.set(state{})
			}
		}
	}
}

func slow(n *nemesis) func() { return broken(state{delay: time.Millisecond + n.upTo(ttl/2)})(n) }

func cut(n *nemesis) func() {
	for _, l := range n.links() {
		l.cut()
	}
	return nil
}

func refuse(n *nemesis) func() {
	heal := broken(state{refuse: true})(n)
	for _, c := range n.clients {
		for _, s := range n.weak {
			c.links[s.number].cut()
		}
	}
	return heal
}

// crash replaces a client by another one.
func crash(n *nemesis) func() {
	i := n.dice(len(n.clients))
	n.clients[i].crash()
	n.clients[i] = n.another()
	return nil
}

// restart stops servers for a while.
func restart(n *nemesis) func() {
	victims := n.victims()
	for _, s := range victims {
		s.stop()
	}
	return func() {
		for _, s := range victims {
			s.start()
		}
	}
}

func refusing(n *nemesis) func() {
	victims := n.victims()
	for _, s := range victims {
		s.refuse("LOADING Redis is loading the dataset in memory")
	}
	return func() {
		for _, s := range victims {
			s.refuse("")
		}
	}
}

func forgetScripts(n *nemesis) func() {
	for _, s := range n.victims() {
		ctx, cancel := context.WithTimeout(n.ctx, time.Second) // the link may be broken
		_ = n.clients[0].rdbs[s.number].ScriptFlush(ctx).Err()
		cancel()
	}
	return nil
}

// atOnce does something to servers in a moment.
func atOnce(do func(s *server)) func(n *nemesis) func() {
	return func(n *nemesis) func() {
		for _, s := range n.victims() {
			do(s)
		}
		return nil
	}
}

func forward(n *nemesis) func() {
	return atOnce(func(s *server) { s.step(min(n.size(), mostAhead-s.clock.offset())) })(n)
}

func back(n *nemesis) func() {
	return atOnce(func(s *server) { s.step(-min(n.size(), mostAhead+s.clock.offset())) })(n)
}

// mostAhead is how far a clock is off at most: less than the two hours for which a server knows the last token.
const mostAhead = time.Hour

// size is the size of a step: a second to a minute, or now and then up to ten.
func (n *nemesis) size() time.Duration {
	if n.dice(4) == 0 {
		return time.Second + n.upTo(10*time.Minute)
	}
	return time.Second + n.upTo(time.Minute)
}

// slew lets the clocks of all servers run faster or slower, each by itself.
func slew(n *nemesis) func() {
	for _, s := range n.servers {
		s.clock.slew([]float64{slewRate, -slewRate}[n.dice(2)])
	}
	return func() {
		for _, s := range n.servers {
			s.clock.slew(0)
		}
	}
}
