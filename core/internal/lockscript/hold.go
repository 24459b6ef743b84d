package lockscript

import (
	"context"
	"time"

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

	Released   string // the key of the memory of its end
	ScriptArgs ScriptArgs
	ReleaseCtx transport.DetachedContext // memory for the context of the release
	// Unanswered is how many requests have an unknown outcome. Each of them may still arrive, even if a later one was
	// answered.
	Unanswered int

	// Of a Mutex.
	RegistersClient bool // true if Redis registers the client as waiting while the lock is busy, see internal/pubsub/wake_one.go
	Woken           bool // true if the client was woken for this request

	// Of a lock with a queue in Redis.
	MayQueue    bool  // true if the hold is queued unless it is granted at once
	QueueNumber int64 // 0 before it was in the queue
	Shares      bool  // true if other owners may hold the lock too

	// Own is what the strategy keeps for this hold; nil for most.
	Own any
}

// Do runs a script for the hold, with its Ack, and returns the reply. It counts the request as unanswered if it was repeated.
func (h *Hold) Do(ctx context.Context, e *transport.Executor, s *transport.Script, keys []string, args ...any) (any, error) {
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
// three are the same for all holds of a lock, so a caller may set them before it sets the ID.
type ScriptArgs struct {
	Lock, Token, WaitingClients, released, id any
}

// setScriptArgs sets the arguments that depend on the ID, and the others unless they are set.
func (h *Hold) setScriptArgs() {
	if h.ScriptArgs.Lock == nil {
		h.ScriptArgs.Lock, h.ScriptArgs.Token, h.ScriptArgs.WaitingClients = h.Keys.Lock, h.Keys.Token, h.Keys.WaitingClients
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

// ReleaseMemories returns for how many ms Redis remembers the end of a hold: found if the release finds the hold in Redis,
// missing if it does not. Both are arguments of scripts. They are longer if a request of the hold may still arrive.
//
// Why two: a hold with at most one unanswered request, that no caller had, may be found by its release. Then that request has
// arrived, and no other will.
func (h *Hold) ReleaseMemories(what ReleaseReason) (found, missing any) {
	switch {
	case what == OnlyQueued:
		return 0, 0
	case what == NeverHeld && h.Unanswered <= 1:
		return releaseMemoryArg, AbandonMemoryArg
	case what == NeverHeld || h.Unanswered > 0:
		return AbandonMemoryArg, AbandonMemoryArg
	}
	return releaseMemoryArg, releaseMemoryArg
}
