package linear

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// kind is what an operation on a lock is.
type kind string

const (
	grant   kind = "grant"
	ended   kind = "end"     // without a proof: expired, forgotten, or released at a time that is not known
	release kind = "release" // one that found the hold
	gone    kind = "gone"    // an answer that Redis does not have the hold any more
	leads   kind = "leader"  // an answer to the question of who leads; token 0 for a vacancy
)

// step is the input of an operation on a lock. The fields below token belong to a grant.
type step struct {
	kind  kind
	by    string // the process, and the number of the call
	token int64

	previous int64 // the greatest token of the grants before, 0 for the first grant
	shared   bool
	limit    int
	permits  int
	slot     int
}

// holder is one lease in the state of a lock.
type holder struct {
	token   int64
	shared  bool
	permits int
	slot    int // -1 if it is not known, or if the lease is not of a semaphore
}

// lock is the state of a lock. It is never changed, only replaced.
type lock struct {
	greatest int64    // token of the last grant
	holders  []holder // in the order of their grants
}

// lockModel is the model of mutexes, read-write locks, semaphores and elections, which may share a name.
//
//   - A grant follows the grant with the next smaller token. It is legal if no holder excludes it, see admits.
//   - An end and a release are legal for a holder only.
//   - An answer that a hold is gone is legal after its grant, and when it is no holder.
//   - An answer that a term leads is legal while it is the holder, a vacancy if there is none.
var lockModel = porcupine.Model{
	Init: func() any { return lock{} },
	Step: func(state, input, _ any) (bool, any) { return state.(lock).step(input.(step)) },
	Equal: func(a, b any) bool {
		return a.(lock).greatest == b.(lock).greatest && slices.Equal(a.(lock).holders, b.(lock).holders)
	},
	DescribeOperation: func(input, _ any) string { return input.(step).String() },
	DescribeState:     func(state any) string { return state.(lock).String() },
}

func (l lock) step(s step) (bool, any) {
	at := slices.IndexFunc(l.holders, func(h holder) bool { return h.token == s.token })
	switch s.kind {
	case grant:
		if s.previous != l.greatest || s.token <= l.greatest || !l.admits(s) {
			return false, l
		}
		slot := s.slot
		if s.limit == 0 {
			slot = -1
		}
		return true, lock{s.token, append(slices.Clone(l.holders), holder{s.token, s.shared, s.permits, slot})}
	case ended, release:
		if at < 0 {
			return false, l
		}
		return true, lock{l.greatest, slices.Delete(slices.Clone(l.holders), at, at+1)}
	case gone:
		return at < 0 && s.token <= l.greatest, l
	default:
		return at >= 0 || s.token == 0 && len(l.holders) == 0, l
	}
}

// admits returns true if no holder excludes a grant. A semaphore's limit is the grant's, whatever earlier ones had.
// A reader counts as one permit.
func (l lock) admits(s step) bool {
	inUse := 0
	for _, h := range l.holders {
		if !h.shared || !s.shared || s.limit > 0 && s.slot >= 0 && h.slot == s.slot {
			return false
		}
		inUse += h.permits
	}
	return s.limit == 0 || inUse+s.permits <= s.limit
}

func (s step) String() string {
	text := fmt.Sprint(s.kind, " ", s.token, " of ", s.by)
	switch {
	case s.kind == leads && s.token == 0:
		return "no leader, says " + s.by
	case s.kind == grant && s.limit > 0:
		return fmt.Sprintf("%s: %d of %d permits, slot %d", text, s.permits, s.limit, s.slot)
	case s.kind == grant && s.shared:
		return text + ": shared"
	}
	return text
}

func (l lock) String() string {
	if len(l.holders) == 0 {
		return fmt.Sprint("free after ", l.greatest)
	}
	var all []string
	for _, h := range l.holders {
		all = append(all, fmt.Sprintf("%d (%d permits)", h.token, h.permits))
	}
	return "held by " + strings.Join(all, ", ")
}
