package linear

import (
	"slices"
	"strings"
)

// electionPart makes the operations of an election whose leader was asked for.
//
// Two operations have no last moment there. An end without a proof may come as late as the next grant, because an answer
// may still tell of a leader whose own client has given up its leadership. A term that an answer tells of, and that no
// campaign has returned, belongs to a campaign whose outcome the candidate does not know: it was granted at any time
// before the answer.
func electionPart(name string, leases []*lease, looks []look, faults []loss) part {
	p := part{model: "election", name: name, rules: lockModel(true)}
	p.add(byToken(append(slices.Clone(leases), hidden(leases, looks)...)), faults)
	for i := range p.ops {
		if p.ops[i].Input.(step).kind == ended {
			p.ops[i].Return = never
		}
	}
	for _, l := range looks {
		p.op(step{kind: leads, by: l.by, token: l.term}, l.called, l.returned)
	}
	return p
}

// hidden returns the leases of terms that only answers tell of.
func hidden(leases []*lease, looks []look) (found []*lease) {
	known := map[int64]bool{0: true}
	begins := never
	for _, l := range leases {
		known[l.token] = true
		begins = min(begins, l.called)
	}
	for _, l := range looks { // in the order of their answers
		begins = min(begins, l.called)
		if known[l.term] {
			continue
		}
		known[l.term] = true
		found = append(found, &lease{
			by: "not known", strategy: "election", names: []string{l.name}, token: l.term, called: begins, returned: l.returned,
			belief: begins, lost: never, leaving: never, unlock: unlock{called: never, returned: never},
		})
	}
	return found
}

// answersMayBeOld returns true on topologies where a replica, or a master that was replaced, may answer. What it answers is
// not judged: docs/elections.md promises an order of the terms there, and no more.
func answersMayBeOld(topology string) bool {
	return strings.HasPrefix(topology, "sentinel") || strings.HasPrefix(topology, "cluster")
}
