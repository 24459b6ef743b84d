package lockscript

import (
	"strconv"
	"sync/atomic"
)

// IDs names the owners and holds of one client: its UUID and a number that is never used again. An owner is named like the
// first of its holds.
type IDs struct {
	Client  string
	counter atomic.Uint64
}

// Next returns a new ID.
func (ids *IDs) Next() string {
	var digits [20]byte
	return ids.Client + ":" + string(strconv.AppendUint(digits[:0], ids.counter.Add(1), 10))
}

// Renew gives a hold a new, unique ID.
func (ids *IDs) Renew(h *Hold) {
	var digits [20]byte
	number := strconv.AppendUint(digits[:0], ids.counter.Add(1), 10)
	h.Released = released + h.Keys.tag + ":" + ids.Client + ":" + string(number)
	h.ID = h.Released[len(h.Released)-len(ids.Client)-1-len(number):]
	h.Unanswered = 0
	h.setScriptArgs()
}
