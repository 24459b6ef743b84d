package acquire

import "github.com/holdfast-go/holdfast/core/internal/script"

// news decides which of the states that an observer reads are new. The zero value has read none.
type news struct {
	told     script.Leader // the last one
	any      bool          // true if told is one
	newest   script.Leader // with the greatest term, and its greatest number; not a vacancy
	heldBack int64         // the term that was held back because it was unproclaimed; 0 for none
}

// next returns what to tell of a state, and false if there is nothing to tell. A vacancy gets the term of the leader before
// it, so that terms never go back. If it returns wait, the state was held back, and the observer must read again soon.
//
// It drops a leader with a smaller term, or with an older value of the same term, than it has read before: a replica or a
// master that was replaced has answered. It cannot tell whether a vacancy is as old as that.
//
// It holds an unproclaimed leader back once. Why: the value follows within a round trip, unless the leader cannot reach Redis.
func (n *news) next(l script.Leader) (tell script.Leader, ok, wait bool) {
	switch {
	case l.Owner == "":
		l.Token = n.newest.Token
	case l.Token < n.newest.Token, l.Token == n.newest.Token && l.Number < n.newest.Number:
		return l, false, false
	case l.Number == 0 && n.heldBack != l.Token:
		n.heldBack = l.Token
		return l, false, true
	default:
		n.newest = l
	}
	if n.any && n.told.Owner == l.Owner && n.told.Token == l.Token && n.told.Value == l.Value {
		return l, false, false
	}
	n.told, n.any = l, true
	return l, true, false
}
