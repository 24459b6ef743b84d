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

	reentry     kind = "reentry"
	left        kind = "leave"         // of a re-entry, which found it
	perhapsLeft kind = "perhaps leave" // the same without a known outcome

	gone  kind = "gone"   // an answer that Redis does not have the hold any more
	leads kind = "leader" // an answer to the question of who leads; token 0 for a vacancy
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
	by      string
	token   int64
	depth   int // re-entries that were not left yet
	shared  bool
	permits int
	slot    int // -1 if it is not known, or if the lease is not of a semaphore
}

// lock is the state of a lock. It is never changed, only replaced.
type lock struct {
	greatest int64    // token of the last grant
	holders  []holder // in the order of their grants
}

// lockModel returns the model of mutexes, read-write locks, semaphores and elections, which may share a name.
//
//   - A grant is legal if no holder excludes it, see admits. If the lock is fenced, it follows the grant with the next smaller token.
//   - A re-entry is legal for a holder only, and gets its token if the lock is fenced.
//   - An end is legal for a holder only, and a release only for one that has left all its re-entries.
//   - An answer that a hold is gone is legal after its grant, and when it is no holder.
//   - An answer that a term leads is legal while it is the holder, a vacancy if there is none.
func lockModel(fenced bool) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return lock{} },
		Step: func(state, input, _ any) (bool, any) { return state.(lock).step(input.(step), fenced) },
		Equal: func(a, b any) bool {
			return a.(lock).greatest == b.(lock).greatest && slices.Equal(a.(lock).holders, b.(lock).holders)
		},
		DescribeOperation: func(input, _ any) string { return input.(step).String() },
		DescribeState:     func(state any) string { return state.(lock).String() },
	}
}

func (l lock) step(s step, fenced bool) (bool, any) {
	at := slices.IndexFunc(l.holders, func(h holder) bool {
		return (h.by == s.by || s.kind == leads) && (h.token == s.token || !fenced)
	})
	switch s.kind {
	case grant:
		if fenced && (s.previous != l.greatest || s.token <= l.greatest) || !l.admits(s) {
			return false, l
		}
		slot := s.slot
		if s.limit == 0 {
			slot = -1
		}
		h := holder{by: s.by, token: s.token, shared: s.shared, permits: s.permits, slot: slot}
		return true, lock{max(l.greatest, s.token), append(slices.Clone(l.holders), h)}
	case reentry:
		if at < 0 {
			return false, l
		}
		return true, l.entered(at, 1)
	case left:
		if at < 0 || l.holders[at].depth == 0 {
			return false, l
		}
		return true, l.entered(at, -1)
	case perhapsLeft:
		if at < 0 || l.holders[at].depth == 0 {
			return true, l
		}
		return true, l.entered(at, -1)
	case ended, release:
		if at < 0 || s.kind == release && l.holders[at].depth > 0 {
			return false, l
		}
		return true, lock{l.greatest, slices.Delete(slices.Clone(l.holders), at, at+1)}
	case gone:
		return at < 0 && s.token <= l.greatest, l
	default:
		return at >= 0 || s.token == 0 && len(l.holders) == 0, l
	}
}

// entered returns the lock with so many more re-entries of a holder.
func (l lock) entered(at, more int) lock {
	holders := slices.Clone(l.holders)
	holders[at].depth += more
	return lock{l.greatest, holders}
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
