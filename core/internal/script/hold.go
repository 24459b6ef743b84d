package script

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// Hold is one acquisition of a lock in Redis: what Lock requests, and what a Lease keeps. It must not be used by several
// goroutines at once, except for the requests of a Redlock to its servers, see countRepeated.
type Hold struct {
	Name     string // of the lock, for errors
	Keys     Keys
	ID       string // never used for another hold; only SetID and IDs.Renew set it
	Owner    string // not "" once the hold has an ID
	ParentID string // the hold under which the owner re-enters; "" for a new owner, and for one that WithOwner has named
	TTL      time.Duration
	MinHold  time.Duration // for which the lock stays taken at least; 0 for none
	Ack      transport.Ack
	Permits  int    // of a semaphore that the hold takes; 0 for any other lock
	Limit    int    // n of that semaphore: how many permits may be in use; 0 for any other lock
	Terms    *Terms // of the attempt of a Once; nil for a lock

	Released   string // the key that bars requests of the hold, see bar.lua
	ScriptArgs ScriptArgs
	ReleaseCtx transport.DetachedContext // memory for the context of the release

	History
}

// History is what has happened to a hold.
type History struct {
	// Unanswered is how many requests have an unknown outcome. Each of them may still arrive, even if a later one was
	// answered.
	Unanswered int
	// Stored is true if an answer has said that Redis has the hold, granted or in the queue. Then a release that finds the hold
	// does not tell whether the unanswered requests have arrived.
	Stored bool
	// ReleasesUnanswered is how many releases have an unknown outcome. Each of them may have ended the hold.
	ReleasesUnanswered int
	// ValidUntil is that of the lease when its release begins; zero if no caller had the hold, and in a Redlock.
	ValidUntil keepalive.Instant
	// ExpiresAt is when Redis lets the hold expire by itself, counted from the last grant or renewal that it has confirmed; zero if
	// that is not known.
	ExpiresAt keepalive.Instant

	QueueNumber int64  // in the queue in Redis; 0 before it was there
	Slot        int    // of the first of its permits, as of the last grant
	Shares      bool   // true if other owners may hold the lock too
	Compact     bool   // true if the hold was granted in the compact state, see lua/lock/compact_grant.lua
	Silent      bool   // true if the release wakes no waiter: another client has the lock by a majority of a Redlock
	Rounds      Rounds // of a Redlock; zero for other locks
}

// Rounds is what a Redlock remembers of its vote rounds for one hold, from one request to the next. Only the goroutine that acquires uses it.
type Rounds struct {
	// Lost is 0 before the first round, and 1 after a round that was not won. After a split, or after a majority without a
	// lease, it is one more than before. Unless it is 0, the next round asks the servers one by one.
	Lost int
	RTT  time.Duration // the longest time that an answer took lately, the scale of the pauses
}

// do runs a script for the hold, with its Ack, and returns the reply. It counts the request as unanswered if it was repeated.
func (h *Hold) do(ctx context.Context, e *transport.Executor, s *transport.Script, keys []string, args ...any) (any, error) {
	c := transport.NewCommand(s, keys, args...)
	c.Ack = h.Ack
	err := e.Run(ctx, c)
	h.countRepeated(c)
	if err != nil {
		return nil, err
	}
	return c.Reply, nil
}

// countRepeated counts a repeated request as unanswered. It writes to the hold only then. Why: the requests of a Redlock
// to its servers share one hold and run concurrently, and are never repeated.
func (h *Hold) countRepeated(c *transport.Command) {
	if c.Repeated {
		h.Unanswered++
	}
}

// SetID sets the ID of a hold, and what depends on it.
func (h *Hold) SetID(id string) {
	h.ID, h.Released = id, h.Keys.Released(id)
	h.setScriptArgs()
}

// ScriptArgs are parts of a hold as arguments of scripts. Why kept: each conversion to any costs an allocation. The first
// two are the same for all holds of a lock, so a caller may set them before it sets the ID.
type ScriptArgs struct {
	Lock, WaitingClients, released, id any
}

// setScriptArgs sets the arguments that depend on the ID, and the others unless they are set.
func (h *Hold) setScriptArgs() {
	if h.ScriptArgs.Lock == nil {
		h.ScriptArgs.Lock, h.ScriptArgs.WaitingClients = h.Keys.Lock, h.Keys.WaitingClients
	}
	h.ScriptArgs.released, h.ScriptArgs.id = h.Released, h.ID
}

// ownerArg returns the owner as an argument.
func (h *Hold) ownerArg() any {
	if h.Owner == h.ID {
		return h.ScriptArgs.id
	}
	return h.Owner
}

// Scripts take their last arguments only as far as these differ from their defaults. So a request of the most frequent kind is
// short, and tells the fast path of its script so by the number of its arguments.

// appendOptional appends arguments up to the last one that is not its default: "", 0 or false.
func appendOptional(args []any, optional ...any) []any {
	n := len(optional)
	for n > 0 && isDefault(optional[n-1]) {
		n--
	}
	return append(args, optional[:n]...)
}

func isDefault(arg any) bool {
	switch arg {
	case "", 0, int64(0), false:
		return true
	}
	return false
}

// idArg returns the ID of the hold as an optional argument: it is the name of the owner by default.
func (h *Hold) idArg() any {
	if h.Owner == h.ID {
		return ""
	}
	return h.ScriptArgs.id
}

// releaseMemoryArgs returns the memories of [Instance.releaseMemories] as optional arguments: missing is found by default.
func (i *Instance) releaseMemoryArgs(h *Hold, what ReleaseReason) (found, missing any) {
	found, missing = i.releaseMemories(h, what)
	if missing == found {
		missing = noMemoryArg
	}
	return found, missing
}
