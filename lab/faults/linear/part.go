package linear

import (
	"cmp"
	"slices"

	"github.com/anishathalye/porcupine"
)

// part is a partition, or a piece of a long one, with the model that judges it.
type part struct {
	model   string // the row of the table
	name    string
	rules   porcupine.Model
	ops     []porcupine.Operation
	excused int  // leases that a fault may have made Redis forget
	entries bool // re-entries are judged too
}

// A name on which all locks are exclusive is judged by four models, those that Jepsen has for locks: each asks for more than those
// before it. The other names are judged with tokens, without re-entries.
var mutexes = []struct {
	model           string
	fenced, entries bool
}{{"mutex", false, false}, {"fenced-mutex", true, false}, {"reentrant-mutex", false, true}, {"reentrant-fenced-mutex", true, true}}

// mostLeases bounds how many grants are judged together: the memory for the search grows with their square.
const mostLeases = 1000

// lockParts makes the operations of one name. A long partition is judged in pieces, in the order of the tokens. Each
// begins with those earlier leases that may still be valid when the first of its own is asked for.
func lockParts(name string, leases []*lease, faults []loss) (all []part) {
	leases = byToken(leases)
	for first := 0; first < len(leases); first += mostLeases {
		own := leases[first:min(first+mostLeases, len(leases))]
		begins := slices.MinFunc(own, func(a, b *lease) int { return cmp.Compare(a.called, b.called) }).called
		var some []*lease
		for _, l := range leases[:first] {
			if l.ends(faults).to >= begins {
				some = append(some, l)
			}
		}
		some = append(some, own...)
		if model := modelOf(leases); model != mutexes[0].model {
			p := part{model: model, name: name, rules: lockModel(true)}
			p.add(some, faults)
			all = append(all, p)
			continue
		}
		for _, m := range mutexes {
			p := part{model: m.model, name: name, rules: lockModel(m.fenced), entries: m.entries}
			p.add(some, faults)
			all = append(all, p)
		}
	}
	return all
}

func byToken(leases []*lease) []*lease {
	return slices.SortedFunc(slices.Values(leases), func(a, b *lease) int { return cmp.Compare(a.token, b.token) })
}

// modelOf returns the row of the table for the leases of one name.
func modelOf(leases []*lease) string {
	model := "mutex"
	for _, l := range leases {
		switch {
		case l.strategy == "election":
			return "election"
		case l.limit > 0:
			return "semaphore"
		case l.shared:
			model = "read-write"
		}
	}
	return model
}

// add makes the operations of leases, which are in the order of their tokens.
func (p *part) add(leases []*lease, faults []loss) {
	previous := int64(0)
	for _, l := range leases {
		p.op(step{
			kind: grant, by: l.by, token: l.token, previous: previous,
			shared: l.shared, limit: l.limit, permits: l.permits, slot: l.slot,
		}, l.called, l.returned)
		previous = l.token
		if p.entries {
			p.enter(l, faults)
		}
		e := l.ends(faults)
		if e.proven {
			p.op(step{kind: release, by: l.by, token: l.token}, e.from, e.to)
		} else {
			p.op(step{kind: ended, by: l.by, token: l.token}, e.from, e.to)
		}
		if e.goneTo > 0 {
			p.op(step{kind: gone, by: l.by, token: l.token}, e.goneFrom, e.goneTo)
		}
		if e.excused {
			p.excused++
		}
	}
}

// enter makes the operations of the re-entries of a lease. One that got another token is left out if a fault may have made Redis
// forget the lease before. So are those of several names, of which any may have been lost.
func (p *part) enter(l *lease, faults []loss) {
	for _, e := range l.entries {
		if e.err != "" || e.returned == never || len(l.names) > 1 || e.token != l.token && firstLoss(faults, l.called, e.returned) != never {
			continue
		}
		p.op(step{kind: reentry, by: l.by, token: e.token}, e.called, e.returned)
		switch {
		case e.leave.called == never:
		case e.leave.proven():
			p.op(step{kind: left, by: l.by, token: e.token}, e.leave.called, e.leave.returned)
		default:
			p.op(step{kind: perhapsLeft, by: l.by, token: e.token}, e.leave.called, never)
		}
	}
}

func (p *part) op(s step, from, to int64) {
	p.ops = append(p.ops, porcupine.Operation{Input: s, Call: from, Return: to})
}
