package script

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// A release may have to be repeated because its answer was lost. What the client knows decides what Redis must remember of it,
// and what it means if a hold is not in Redis any more:
//
//	request without | release without | lease is valid for  | Redis remembers  | a missing hold was
//	an answer       | an answer       | the time of retries | the release for  |
//	no              | no              | yes                 | nothing          | expired, forced or lost
//	no              | yes             | yes                 | nothing          | released, unless a mark says: forced
//	no              | no or yes       | no                  | releaseMemory    | what Redis remembers
//	yes             | no or yes       | yes or no           | AbandonMemory    | what Redis remembers
//
// Why no memory in the first two rows: before the lease expires, only its own release and ForceUnlock delete a hold. ForceUnlock
// leaves a mark of each hold that it ends, for longer than the lease, see lua/lock/force.lua.
//
// What the second row cannot see: that Redis lost the hold, or an operator deleted its key, before the release whose answer was
// lost.

const (
	// ReleaseTimeout bounds how long a caller waits for the answer to a release, and so its retries.
	ReleaseTimeout = 5 * time.Second
	// releaseMemory is how long Redis remembers a release of a lease that may expire during the retries.
	releaseMemory = ReleaseTimeout + time.Second
	// redlockMemory is how long one server of a Redlock remembers any release. Why: a read repair of the hold may be in flight,
	// and would grant it anew.
	redlockMemory = 15 * time.Second
)

// releaseMemories returns for how many ms Redis remembers the release of a hold, and refuses requests of the hold that arrive
// later: found if the release finds the hold in Redis, missing if it does not. Both are arguments of scripts; 0 is no memory.
//
// Why two: the only request that can have stored a hold may be the unanswered one. If its release finds such a hold, the request
// has arrived, and no other will. It is different if an answer has said that Redis has the hold:
//
//  1. A request is answered: the hold is in the queue.
//  2. The waiter asks again. The request is still on its way when the holder's release grants the lock to the waiter.
//  3. The waiter gives up. Its release finds the hold, and must be remembered.
//  4. The request arrives. Otherwise it would take the lock for a caller that does not exist.
func (i *Instance) releaseMemories(h *Hold, what ReleaseReason) (found, missing any) {
	switch {
	case i.OfRedlock && what == NeverHeld: // votes are not counted as unanswered
		return redlockMemoryArg, abandonMemoryArg
	case i.OfRedlock:
		return redlockMemoryArg, redlockMemoryArg
	case what == OnlyQueued, what == NeverHeld && h.Unanswered == 0:
		return noMemoryArg, noMemoryArg
	case what == NeverHeld && h.Unanswered == 1 && !h.Stored:
		return noMemoryArg, abandonMemoryArg
	case what == NeverHeld || h.Unanswered > 0:
		return abandonMemoryArg, abandonMemoryArg
	case h.ValidUntil.Sub(i.Now()) < releaseMemory:
		return releaseMemoryArg, releaseMemoryArg
	}
	return noMemoryArg, noMemoryArg
}

// atLeast returns a memory of [Instance.releaseMemories], or d if that is longer.
func atLeast(d time.Duration, memory any) any {
	if ms, ok := memory.(int64); ok {
		return max(ms, Milliseconds(d))
	}
	return memory
}

// sendRelease runs a command that releases the hold, and notes whether it may have been executed without an answer.
func (h *Hold) sendRelease(ctx context.Context, e *transport.Executor, c *transport.Command) error {
	err := e.Run(ctx, c)
	if c.Repeated || err != nil && transport.MayHaveRun(err) {
		h.ReleasesUnanswered++
	}
	return err
}

// wasReleased returns whether an earlier release has ended a hold that Redis does not have any more, and does not remember. The
// caller must have found the hold missing just now.
//
// Why the clock is read last: the hold was found missing, and the mark was read, before that. So the lease had not expired then,
// and the mark would have been there.
func (i *Instance) wasReleased(ctx context.Context, h *Hold) (bool, error) {
	if h.ReleasesUnanswered == 0 || i.Now() >= h.ValidUntil {
		return false, nil
	}
	reply, err := i.Exec.Do(ctx, wasForcedScript, []string{h.Keys.Forced()}, h.ID)
	if err != nil {
		return false, err
	}
	forced, err := readStatus(reply, 0, 1)
	return err == nil && forced == 0 && i.Now() < h.ValidUntil, err
}
