//go:build holdfast_simulation

package simulate_test

import "fmt"

// kind is what the clients of a world lock on.
type kind struct {
	name    string
	servers int
	clocks  bool // the servers' clocks are set
	forgets bool // the servers forget locks
	only    int  // the row of its one fault; 0 for all
}

// kinds are the kinds of the seeds, in turn. One server has only one of the two faults: if it has lost its data and its
// clock is behind, tokens may fall, see "Tokens" in docs/guarantees.md. A Redlock has both, because its other servers
// know the tokens.
var kinds = []kind{
	{name: "one server", servers: 1, forgets: true},
	{name: "one server, clock set", servers: 1, clocks: true},
	{name: "Redlock of 3", servers: 3, clocks: true, forgets: true},
	{name: "one server", servers: 1, forgets: true},
	{name: "one server, clock set", servers: 1, clocks: true},
	{name: "Redlock of 5", servers: 5, clocks: true, forgets: true},
}

func kindOf(seed uint64) kind { return kinds[(seed-1)%uint64(len(kinds))] }

func (k kind) redlock() bool { return k.servers > 1 }

// minority is how many servers of a Redlock may forget, or have their clock set, without harm.
func (k kind) minority() int { return (k.servers - 1) / 2 }

func (k kind) String() string { return fmt.Sprint("simulation: ", k.name) }
