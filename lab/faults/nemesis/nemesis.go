package nemesis

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/lab/faults/history"
	"github.com/holdfast-go/holdfast/lab/faults/topology"
	"github.com/holdfast-go/holdfast/lab/faults/worker"
)

// Fleet is the workers.
type Fleet interface {
	Size() int
	Kill(i int)    // SIGKILL
	Restart(i int) // after Kill
	Stop(i int)    // SIGSTOP
	Resume(i int)
	Tell(i int, c worker.Command)
}

// Plan is what a nemesis goes by.
type Plan struct {
	Seed uint64
	TTL  time.Duration // of the locks
	// Counts has how often each fault was injected before, and is brought up to date: what was rare is made up for.
	Counts map[string]int
	Clocks bool // the workers' clocks can be set
	// Lossless leaves out the faults by which servers forget locks.
	Lossless bool
}

// Nemesis breaks one deployment and its workers.
type Nemesis struct {
	Plan
	t      testing.TB
	d      *topology.Deployment
	fleet  Fleet
	log    *history.Log
	random *rand.Rand
	ttl    time.Duration
}

// New makes a nemesis. It is used by the goroutine of the test only.
func New(t testing.TB, d *topology.Deployment, fleet Fleet, log *history.Log, plan Plan) *Nemesis {
	return &Nemesis{
		Plan: plan, t: t, d: d, fleet: fleet, log: log, random: rand.New(rand.NewPCG(plan.Seed, 7)), ttl: plan.TTL,
	}
}

// part is what a fault is about. Two faults at once are of two parts, so that none undoes the other.
type part string

const (
	links   part = "links"
	servers part = "servers"
	workers part = "workers"
)

// fault is one kind of them.
type fault struct {
	row  int
	name string
	part part
	on   []topology.Kind // nil for all
	// loses is why servers may forget locks by it, see [history.Event]; nil if they must not.
	loses func(topology.Kind) string
	// begin brings it about and returns what ends it; nil if it could not be done now.
	begin func(n *Nemesis) (heal func())
	// lasting is for how long, at least and at most, in TTLs.
	lasting [2]float64
}

// link, process and server make faults of their part, which last from least to most TTLs.
func link(row int, name string, begin func(n *Nemesis) func(), least, most float64) fault {
	return fault{row: row, name: name, part: links, begin: begin, lasting: [2]float64{least, most}}
}

func process(row int, name string, begin func(n *Nemesis) func(), least, most float64) fault {
	return fault{row: row, name: name, part: workers, begin: begin, lasting: [2]float64{least, most}}
}

func server(row int, name string, begin func(n *Nemesis) func(), least, most float64) fault {
	return fault{row: row, name: name, part: servers, begin: begin, lasting: [2]float64{least, most}}
}

func (f fault) only(on []topology.Kind) fault {
	f.on = on
	return f
}

func (f fault) losing(why func(topology.Kind) string) fault {
	f.loses = why
	return f
}

// Rage continues for so long, and returns when all is healed.
func (n *Nemesis) Rage(d time.Duration) {
	n.t.Helper()
	for windows, end := 1, time.Now().Add(d); time.Now().Before(end); windows++ {
		switch {
		case windows%9 == 0:
			n.log.Say(history.Event{Kind: history.Calm})
			time.Sleep(n.ttl + 2500*time.Millisecond)
		case windows%3 == 0:
			n.sleep(n.ttl/2, n.ttl)
		default:
			n.window()
		}
	}
}

// window is one fault, or two at once.
func (n *Nemesis) window() {
	first, ok := n.pick("")
	if !ok {
		return
	}
	endFirst := n.strike(first)
	if endFirst == nil {
		return
	}
	second, ok := n.pick(first.part)
	if !ok || n.random.IntN(3) > 0 {
		n.last(first)
		endFirst()
		n.sleep(0, n.ttl/4)
		return
	}
	n.sleep(0, n.ttl/4)
	if endSecond := n.strike(second); endSecond != nil {
		n.note(history.Fault, 53, "two at once", "")
		n.last(second)
		endSecond()
		n.note(history.Heal, 53, "two at once", "")
	}
	n.last(first)
	endFirst()
	n.sleep(0, n.ttl/4)
}

// pick chooses among the faults that this topology can have, except faults of a part: rare ones more likely.
func (n *Nemesis) pick(except part) (chosen fault, ok bool) {
	total := 0.0
	for _, f := range all {
		if f.part == except || !f.applies(n.d.Kind) || f.row == rowClock && !n.Clocks ||
			n.Lossless && f.loses != nil && f.loses(n.d.Kind) != "" {
			continue
		}
		count := float64(n.Counts[f.name] + 1)
		weight := 1 / (count * count * count)
		if total += weight; n.random.Float64()*total < weight {
			chosen, ok = f, true
		}
	}
	return chosen, ok
}

// strike begins a fault and tells of it. It returns nil if that could not be done now.
func (n *Nemesis) strike(f fault) (heal func()) {
	lost := ""
	if f.loses != nil {
		lost = f.loses(n.d.Kind)
	}
	n.note(history.Fault, f.row, f.name, lost)
	end := f.begin(n)
	if end == nil {
		n.note(history.Heal, f.row, f.name, "not done")
		return nil
	}
	n.Counts[f.name]++
	return func() {
		end()
		n.note(history.Heal, f.row, f.name, "")
	}
}

// last lets a fault continue.
func (n *Nemesis) last(f fault) {
	ttl := float64(n.ttl)
	n.sleep(time.Duration(f.lasting[0]*ttl), time.Duration(f.lasting[1]*ttl))
}

func (n *Nemesis) note(kind history.Kind, row int, name, loses string) {
	n.log.Say(history.Event{Kind: kind, Row: row, Name: name, Loses: loses})
}

func (n *Nemesis) sleep(least, most time.Duration) { time.Sleep(least + n.upTo(most-least)) }

func (n *Nemesis) upTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(n.random.Int64N(int64(d)))
}

// do runs a command on a server and reports whether it succeeded.
func (n *Nemesis) do(server int, args ...any) bool {
	err := n.d.Admin(server).Do(context.Background(), args...).Err()
	return err == nil
}

// master is one of the servers that grant locks.
func (n *Nemesis) master() (int, bool) {
	masters := n.d.Masters(context.Background())
	if len(masters) == 0 {
		return 0, false
	}
	return masters[n.random.IntN(len(masters))], true
}

// victims are the servers that one fault strikes: of a Redlock up to three of five, else one.
func (n *Nemesis) victims() []int {
	if n.d.Kind != topology.Redlock {
		if m, ok := n.master(); ok {
			return []int{m}
		}
		return nil
	}
	count := []int{1, 1, 1, 2, 2, 2, 3}[n.random.IntN(7)]
	return n.random.Perm(len(n.d.Servers))[:count]
}
