//go:build holdfast_simulation

package simulate_test

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/lab/faults/history"
)

// nemesis breaks links, clients and servers of a simulation.
type nemesis struct {
	*world
	clients []*client
	born    int
	weak    []*server // those that faults of links and servers are about
}

func newNemesis(w *world) *nemesis {
	n := &nemesis{world: w}
	n.weaken()
	for range clients {
		n.clients = append(n.clients, n.another())
	}
	return n
}

// another is a new client.
func (n *nemesis) another() *client {
	n.born++
	return n.newClient(fmt.Sprint("c", n.born))
}

// rage continues for so long.
func (n *nemesis) rage(d time.Duration) {
	for window, end := 1, time.Now().Add(d); time.Now().Before(end); window++ {
		if window%4 == 0 {
			n.say(history.Event{Kind: history.Calm})
			time.Sleep(n.recovery())
			n.weaken()
			continue
		}
		endFirst := n.strike("")
		if n.dice(3) == 0 { // another one meanwhile
			endSecond := n.strike(", too")
			time.Sleep(n.upTo(ttl))
			endSecond()
		}
		time.Sleep(n.upTo(3 * ttl / 2))
		endFirst()
		time.Sleep(n.upTo(ttl / 2))
	}
}

// strike begins a fault, and returns what ends it. What happens in a moment has ended then.
func (n *nemesis) strike(also string) (end func()) {
	f := n.pick()
	name := f.name + also
	fault := history.Event{Kind: history.Fault, Row: f.row, Name: name}
	if !n.kind.redlock() { // of a Redlock only a minority forgets
		fault.Loses = f.loses
	}
	n.say(fault)
	heal := f.begin(n)
	end = func() {
		if heal != nil {
			heal()
		}
		n.say(history.Event{Kind: history.Heal, Row: f.row, Name: name})
	}
	if heal == nil {
		end()
		return func() {}
	}
	return end
}

func (n *nemesis) pick() fault {
	for {
		f := faults[n.dice(len(faults))]
		if only := n.kind.only; only != 0 && f.row != only {
			continue
		}
		if f.on == nil || f.on(n) {
			return f
		}
	}
}

// weaken chooses other servers. Of a Redlock it is a minority, or now and then all: then no server forgets.
func (n *nemesis) weaken() {
	most := n.kind.minority()
	if !n.kind.redlock() || n.dice(3) == 0 {
		n.weak = n.servers
		return
	}
	n.weak = nil
	for _, i := range n.order(len(n.servers))[:1+n.dice(most)] {
		n.weak = append(n.weak, n.servers[i])
	}
}

// recovery is how long a calm lasts. A Redlock takes longer: before other servers forget, each lease has to be on those that
// were broken. A hold that a broken link left there lasts a TTL, and the renewal that repairs comes within another one.
func (n *nemesis) recovery() time.Duration {
	if n.kind.redlock() {
		return 2*ttl + 15*time.Second
	}
	return ttl + 9*time.Second
}
