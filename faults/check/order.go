package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/holdfast-go/holdfast/faults/history"
)

// step is a grant or a release that is known to have happened, somewhere between its call and its return.
type step struct {
	release  bool
	token    int64
	previous int64 // of a grant: the next smaller token that is known, 0 for the first
}

// held is the state of a lock. That leases may run out is in what it does not forbid: a grant may follow a grant.
type held struct{ holder, highest int64 }

// leaseModel: grants have growing tokens, so that each follows the one with the next smaller token, and a release
// succeeds only for who has the lock.
var leaseModel = porcupine.Model{
	Init: func() any { return held{} },
	Step: func(state, input, _ any) (bool, any) {
		h, s := state.(held), input.(step)
		if s.release {
			return h.holder == s.token, held{0, h.highest}
		}
		return s.previous == h.highest, held{s.token, s.token}
	},
	DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%+v", input) },
}

const (
	// orderTime bounds the search for each name.
	orderTime = 10 * time.Second
	// atOnce is how many grants are searched together: the cost grows faster than their number.
	atOnce = 2000
)

// order: what was granted and released lies in some order in which every release was that of the holder. It is not
// searched for where names are shared, nor where two masters may have granted at once.
func (r *Report) order(v *view) {
	for _, w := range v.faults {
		if w.loses == "asynchronous failover" {
			return
		}
	}
	released := make(map[key][2]int64)
	for _, e := range v.events {
		if k := (key{e.By, e.Call}); e.Op == "unlock" && e.Kind == history.Return && e.Err == "" && v.byKey[k] != nil {
			if _, twice := released[k]; !twice {
				released[k] = [2]int64{v.byKey[k].unlocked, e.At}
			}
		}
	}
	for name, leases := range v.byName {
		if !slices.ContainsFunc(leases, func(l *lease) bool { return l.shared }) {
			r.orderOf(v, name, leases, released)
		}
	}
}

// lostBetween tells whether a fault made Redis lose data in that time. An unlock whose answer was lost then takes the loss for its
// own doing, see core/internal/lockscript/release.go. So its success proves nothing.
func (v *view) lostBetween(from, to int64) bool {
	return slices.ContainsFunc(v.faults, func(w *window) bool { return w.loses != "" && w.from >= from && w.from <= to })
}

func (r *Report) orderOf(v *view, name string, leases []*lease, released map[key][2]int64) {
	leases = slices.Clone(leases)
	slices.SortFunc(leases, func(a, b *lease) int { return int(a.token - b.token) })
	for part := range slices.Chunk(leases, atOnce) {
		var all []porcupine.Operation
		previous := int64(0)
		for i, l := range part {
			grant := step{token: l.token, previous: previous}
			previous = l.token
			all = append(all, porcupine.Operation{ClientId: i, Input: grant, Call: l.called, Return: l.from})
			if at, ok := released[l.key]; ok && l.op != "do" && !v.lostBetween(l.from, at[1]) {
				all = append(all, porcupine.Operation{
					ClientId: i, Input: step{release: true, token: l.token}, Call: at[0], Return: at[1],
				})
			}
		}
		switch porcupine.CheckOperationsTimeout(leaseModel, all, orderTime) {
		case porcupine.Ok:
			r.Linear++
		case porcupine.Illegal:
			r.violated("order: the grants and releases of %q lie in no possible order", name)
		default:
			r.Unclear = append(r.Unclear, name)
		}
	}
}
