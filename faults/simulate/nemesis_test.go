//go:build holdfast_simulation

package simulate_test

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/faults/history"
)

// nemesis breaks links, clients and the server of a simulation.
type nemesis struct {
	*world
	clients []*client
	born    int
}

// another is a new client.
func (n *nemesis) another() *client {
	n.born++
	return n.newClient(fmt.Sprint("c", n.born))
}

// fault is one thing to break; what it does it undoes at the end.
type fault struct {
	row   int
	name  string
	loses string
	begin func(n *nemesis) (heal func())
}

var faults = []fault{
	{1, "replies lost", "", broken(state{dropBack: true})},
	{3, "requests lost", "", broken(state{dropOut: true})},
	{4, "requests arrive late", "", broken(state{holdOut: true})},
	{9, "slow link", "", slow},
	{10, "silent blackhole", "", broken(state{dropOut: true, dropBack: true})},
	{10, "connections cut", "", cut},
	{14, "connections refused", "", refuse},
	{17, "client gone", "", crash},
	{28, "server refuses", "", refusing},
	{29, "scripts forgotten", "", func(n *nemesis) func() {
		_ = n.clients[0].rdb.ScriptFlush(n.ctx).Err() // that may be the one that is cut off
		return func() {}
	}},
	{34, "flushed", "FLUSHALL", func(n *nemesis) func() { n.server.FlushAll(); return func() {} }},
}

// rage goes on for so long.
func (n *nemesis) rage(d time.Duration) {
	for window, end := 1, time.Now().Add(d); time.Now().Before(end); window++ {
		if window%4 == 0 {
			n.say(history.Event{Kind: history.Calm})
			time.Sleep(ttl + 9*time.Second)
			continue
		}
		f := faults[n.dice(len(faults))]
		n.say(history.Event{Kind: history.Fault, Row: f.row, Name: f.name, Loses: f.loses})
		heal := f.begin(n)
		if n.dice(3) == 0 { // another one meanwhile
			g := faults[n.dice(len(faults))]
			n.say(history.Event{Kind: history.Fault, Row: g.row, Name: g.name + ", too", Loses: g.loses})
			other := g.begin(n)
			time.Sleep(n.upTo(ttl))
			other()
			n.say(history.Event{Kind: history.Heal, Row: g.row, Name: g.name + ", too"})
		}
		time.Sleep(n.upTo(3 * ttl / 2))
		heal()
		n.say(history.Event{Kind: history.Heal, Row: f.row, Name: f.name})
		time.Sleep(n.upTo(ttl / 2))
	}
}

// some chooses clients: one, or now and then all.
func (n *nemesis) some() []*client {
	if n.dice(3) == 0 {
		return n.clients
	}
	i := n.dice(len(n.clients))
	return n.clients[i : i+1]
}

func broken(s state) func(n *nemesis) func() {
	return func(n *nemesis) func() {
		chosen := append([]*client(nil), n.some()...)
		for _, c := range chosen {
			c.link.set(s)
		}
		return func() {
			for _, c := range chosen {
				if c.ctx.Err() == nil { // who has crashed stays cut off
					c.link.set(state{})
				}
			}
		}
	}
}

func slow(n *nemesis) func() { return broken(state{delay: time.Millisecond + n.upTo(ttl/2)})(n) }

func cut(n *nemesis) func() {
	for _, c := range n.some() {
		c.link.cut()
	}
	return func() {}
}

func refuse(n *nemesis) func() {
	heal := broken(state{refuse: true})(n)
	for _, c := range n.clients {
		c.link.cut()
	}
	return heal
}

// crash replaces a client by another one.
func crash(n *nemesis) func() {
	i := n.dice(len(n.clients))
	n.clients[i].crash()
	n.clients[i] = n.another()
	return func() {}
}

func refusing(n *nemesis) func() {
	n.server.SetError("LOADING Redis is loading the dataset in memory")
	return func() { n.server.SetError("") }
}
