package lockscript

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// Hold is one acquisition of a lock in Redis: what Lock requests, and what a Lease keeps.
type Hold struct {
	Name     string
	Keys     Keys
	ID       string // never used for another hold; set by setID or ids.renew only
	Owner    string // never empty once the hold has an id
	ParentID string // the hold under which its owner is in; "" for a new owner, and one that WithOwner has named
	TTL      time.Duration
	MinHold  time.Duration
	Ack      transport.Ack

	Released   string // where its end is remembered
	ScriptArgs ScriptArgs
	ReleaseCtx transport.DetachedContext // of its release
	// Unanswered counts its requests whose outcome is not known: each may arrive yet, whatever a later one has come to.
	Unanswered int

	// Of a Mutex.
	RegistersClient bool // register the client as waiting if the lock is busy, see internal/pubsub/wake_one.go
	Woken           bool // the client was woken

	// Of a lock with a queue in Redis.
	MayQueue    bool  // if it is not granted at once
	QueueNumber int64 // 0 before it was in the queue
	Shares      bool  // others may have the lock too

	// Own is what the strategy keeps for this hold; nil for most.
	Own any
}

// Do runs a script for the hold, and counts the request if it was repeated.
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

// SetID sets the ID of a hold.
func (h *Hold) SetID(id string) {
	h.ID, h.Released = id, h.Keys.Released(id)
	h.setScriptArgs()
}

// ScriptArgs are parts of a hold as arguments of scripts. Why kept: each conversion to any costs an allocation.
type ScriptArgs struct {
	Lock, Token, WaitingClients, released, id any
}

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

// ReleaseMemories returns how long Redis remembers the release of a hold, in ms: if the release finds the hold, and if it
// does not. It is longer if a request of the hold may still arrive.
//
// The release of a hold that was never used and has one request without an answer may find the hold: then the request
// has arrived, and no other will.
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
