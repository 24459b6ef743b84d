package linear

import "github.com/holdfast-go/holdfast/lab/faults/worker"

// lease is what a history says of one grant.
type lease struct {
	by       string // the process, and the number of the call
	op       string
	strategy string
	names    []string
	shared   bool
	limit    int // n of a semaphore, 0 for other locks
	permits  int
	slot     int // of the first permit, -1 if it is not known
	token    int64

	called, returned int64  // of the request
	belief           int64  // the greatest time until which the holder was told that the lease is valid
	lost             int64  // when the holder was told of a loss; never if it was not
	why              string // the class of the loss
	leaving          int64  // when the process began to release all that it held
	unlock           unlock
	entries          []entry // of the holder, in their order
}

// entry is a re-entry of the holder, and what ended it.
type entry struct {
	called, returned int64 // never if it did not return
	err              string
	token            int64
	leave            unlock
}

// shown returns when re-entries last showed that the holder had the lease, and 0 without any.
func (l *lease) shown() (at int64) {
	for _, e := range l.entries {
		if e.err != "" || e.returned == never || e.token != l.token {
			continue
		}
		at = max(at, e.called)
		if e.leave.proven() {
			at = max(at, e.leave.called)
		}
	}
	return at
}

// unlock is the first release of a lease by its holder.
type unlock struct {
	called, returned int64 // never if it was not called, or did not return
	err              string
}

// proven returns true if the release found what it was to release.
func (u unlock) proven() bool { return u.called != never && u.returned != never && u.err == "" }

// end is when a lease may be over, and what was observed of that.
type end struct {
	from, to int64 // it ends between these
	proven   bool  // by a release that found the hold in Redis between these
	goneFrom int64 // Redis did not have the hold at a moment between goneFrom and goneTo; goneTo is 0 if nothing says so
	goneTo   int64
	excused  bool // a fault may have made Redis forget the lease
}

// ends returns when the lease may be over. Validity is by the server's clock, which the history does not have. What it
// has is the time until which the client told the holder that the lease is valid. The server's expiry is not earlier, so
// before that time no other grant is legal. After it, one may follow at any moment.
//
// The cases, for a lease without an excuse:
//
//	unlock returned without an error   the release is proven: held until a moment between its call and its return
//	unlock returned "not held"         the lease was over before, so it had run out: its end is the belief's
//	unlock returned "over"             Redis was not asked: its end is the belief's
//	unlock without a known outcome     it may take effect at any time after its call
//	no unlock, the process was killed  the lease runs out: its end is the belief's
//	lost, "taken"                      the same, and Redis did not have the hold when the loss was told
//	lost, held for too long            Redis keeps it for the rest of its TTL: its end is the belief's
//	another loss                       its end is the belief's, or the loss if that was earlier
//
// If several names were locked together, "not held" and "taken" may be about another name. So they count as an unlock
// without a known outcome, and as another loss. A Redlock is the same for "not held": the release may have freed some of the
// servers, so that another grant found a majority, and the lease has run out on the others before the release reached them.
// It is also the same if Redis may forget data during the unlock, because Redis remembers a release whose answer was lost: what
// it has forgotten may be the release, not the hold.
//
// An end without a proof is placed at its first possible moment, although it has no last one, because an earlier end allows
// every later operation that a late one allows. So nothing is lost, and the search stays short.
func (l *lease) ends(faults []loss) end {
	e := end{from: min(l.belief, l.leaving)}
	single := len(l.names) == 1
	switch {
	case l.lost == never, l.why == worker.TooLong:
	case l.why == worker.Taken && single:
		e.goneFrom, e.goneTo = l.returned, l.lost
	default:
		e.from = min(e.from, l.lost)
	}
	switch u := l.unlock; {
	case u.called == never:
	case u.proven() && l.op != "do":
		e.proven = true
	case u.err == worker.NotHeld && l.tellsGone() && firstLoss(faults, u.called, u.returned) == never:
		e.goneFrom, e.goneTo = u.called, u.returned
	default:
		e.from = min(e.from, u.called)
	}
	first, last := e.from, e.from
	if e.proven {
		first, last = l.unlock.called, l.unlock.returned
	}
	if loss := firstLoss(faults, l.called, last); loss != never {
		e.proven, e.excused, e.from = false, true, min(loss, first)
	}
	if e.proven {
		e.from, e.to = l.unlock.called, l.unlock.returned
		return e
	}
	e.from = max(e.from, l.called, l.shown())
	e.to = max(e.from, l.returned)
	return e
}

// tellsGone returns true if "not held" as the answer to the unlock says that Redis did not have the hold of this name.
func (l *lease) tellsGone() bool {
	return len(l.names) == 1 && l.strategy != worker.Redlock && (l.lost == never || l.why == worker.Taken)
}
