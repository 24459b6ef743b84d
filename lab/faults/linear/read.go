package linear

import (
	"fmt"

	"github.com/holdfast-go/holdfast/lab/faults/history"
	"github.com/holdfast-go/holdfast/lab/faults/worker"
)

// call identifies a call, and the lease that it brought.
type call struct {
	by     string
	number int64
}

// look is one answer to the question of who leads.
type look struct {
	by               string
	name             string
	called, returned int64
	term             int64 // 0 for a vacancy
}

// record is a history as operations.
type record struct {
	topology string
	leases   map[string][]*lease // by name
	looks    map[string][]look   // by name
	writes   map[string][]write  // by resource, in their order
	stale    map[string][]write  // the same of the unfenced side, which accepts all writes
	faults   []loss

	called map[call]int64
	byCall map[call]*lease
}

// read makes operations of a history.
func read(events []history.Event) *record {
	r := &record{
		leases: make(map[string][]*lease), looks: make(map[string][]look), writes: make(map[string][]write),
		stale: make(map[string][]write), called: make(map[call]int64), byCall: make(map[call]*lease), faults: losses(events),
	}
	for _, e := range events {
		c := call{e.By, e.Call}
		switch e.Kind {
		case history.Meta:
			r.topology = e.Name
		case history.Call:
			r.call(c, e)
		case history.Return:
			r.returned(c, e)
		case history.Leaving:
			r.leave(e)
		case history.Write:
			r.write(e)
		case history.Valid:
			if l := r.byCall[c]; l != nil {
				l.belief = max(l.belief, e.Until)
			}
		case history.End:
			r.lost(c, e)
		}
	}
	return r
}

func (r *record) call(c call, e history.Event) {
	switch l := r.byCall[c]; {
	case e.Op == "enter" && l != nil:
		l.entries = append(l.entries, entry{called: e.At, returned: never, leave: unlock{called: never, returned: never}})
	case e.Op == "leave" && l != nil && len(l.entries) > 0:
		l.entries[len(l.entries)-1].leave.called = e.At
	case e.Op != "unlock":
		if _, known := r.called[c]; !known {
			r.called[c] = e.At
		}
	case l != nil && l.unlock.called == never:
		l.unlock.called = e.At
	}
}

func (r *record) returned(c call, e history.Event) {
	l := r.byCall[c]
	switch e.Op {
	case "lock", "trylock", "do":
		if l == nil && e.Err == "" && e.Token > 0 {
			r.grant(c, e)
		}
	case "extend":
		if l != nil && e.Err == "" {
			l.belief = max(l.belief, e.Until)
		}
	case "enter":
		if l != nil && len(l.entries) > 0 {
			last := &l.entries[len(l.entries)-1]
			last.returned, last.err, last.token = e.At, e.Err, e.Value
		}
	case "leave":
		if l != nil && len(l.entries) > 0 {
			last := &l.entries[len(l.entries)-1].leave
			last.returned, last.err = e.At, e.Err
		}
	case "unlock":
		if l != nil && l.unlock.returned == never {
			l.unlock.returned, l.unlock.err = e.At, e.Err
		}
	case "leader":
		if e.Err == "" || e.Err == worker.Vacant {
			name := e.Names[0]
			r.looks[name] = append(r.looks[name], look{e.By, name, r.called[c], e.At, e.Value})
		}
	}
}

func (r *record) grant(c call, e history.Event) {
	l := &lease{
		by: fmt.Sprint(e.By, " #", e.Call), op: e.Op, strategy: e.Strategy, names: e.Names, shared: e.Shared, limit: e.Limit, permits: max(e.Permits, 1),
		slot: e.Slot, token: e.Token, called: r.called[c], returned: e.At, belief: e.Until, lost: never, leaving: never,
		unlock: unlock{called: never, returned: never},
	}
	r.byCall[c] = l
	for _, name := range l.names {
		r.leases[name] = append(r.leases[name], l)
	}
}

// leave notes that a process closes its client, which releases what it still holds.
func (r *record) leave(e history.Event) {
	for c, l := range r.byCall {
		if c.by == e.By {
			l.leaving = min(l.leaving, e.At)
		}
	}
}

func (r *record) lost(c call, e history.Event) {
	if l := r.byCall[c]; l != nil && l.lost == never {
		l.lost, l.why = e.At, e.Err
		l.belief = max(l.belief, min(e.Until, e.At))
	}
}

func (r *record) write(e history.Event) {
	into := r.writes
	if e.Unfenced {
		into = r.stale
	}
	name := e.Names[0]
	into[name] = append(into[name], write{at: e.At, by: e.By, token: e.Token, refused: e.Refused && !e.Unfenced})
}
