// Package acquire runs one acquisition of a lock: requests until Redis grants the hold or there is a reason to stop, and the
// release of holds.
//
// # States
//
// [Acquisition.Run] chooses one of three ways. The states have the names of the methods that run them.
//
//	Run ──┬── the call does not wait ─────────┬───────────────► askWithoutWaiting: ask ── busy ──► end
//	      ├── as many wait as may ── re-entry ┘
//	      │                       └─ no re-entry ─────────────► end: ErrWaiterLimit
//	      ├── the lock has a queue in Redis ──────────────────► waitInQueue
//	      └── all others ─────────────────────────────────────► waitWithoutQueue
//
//	waitInQueue:  ┌──► ask ── busy ──► awaitGrant ── message with a new token ──► granted
//	              │                       │
//	              └───────────────────────┘ message without a usable grant, broadcast, place lost,
//	                                        end of the holder's lease, or heartbeats have no answer
//
//	waitWithoutQueue:  behind others in the local list ── those before it have left ──► pollAsHead
//	                     └── dismissed by the first ──┬── with its answer ──► end
//	                                                  └── to ask alone ─────► ask ── busy ──► back into the list
//
//	pollAsHead:  ┌──► ask ── busy ──► pause
//	             └──────────────────────┘ notification, end of the holder's lease, or poll interval
//
// In every way, ask sends the request until Redis answers:
//
//	request ──┬── granted, and accepted by the caller ─────► end: a lease
//	  ▲       ├── busy ────────────────────────────────────► back to the state that asked
//	  │       ├── refused, so that waiting does not help ──► end: RefusedError
//	  │       ├── an error that a repetition would meet ───► end: FailedError
//	  │       ├── granted too late, or released before ────► replaceHold ──┐
//	  │       └── no answer, or a transient error ─────────────────────────┤
//	  │                                                                    ├── for OutageLimit ──► end: UnavailableError
//	  └──────────────────────────── pause ◄────────────────────────────────┘
//
// In each state the end of the context, of the longest wait, or of the client ends the acquisition with waiters.ErrTimeUp. An
// acquisition without a lease leaves no hold: cleanUp releases what may have been granted or queued, in the background, until
// Redis confirms it.
//
// # Terms
//
//   - Caller: the call of Lock, TryLock or Begin that the acquisition serves. It makes the lease.
//   - Uncertain: a request has an unknown outcome, so its hold may be in Redis, or may still get there.
//   - Parent: the lease under which the request is a re-entry.
//   - Named owner: an owner that WithOwner has named. Another process may hold the lock for it.
//   - First: the only waiter of a local list that asks Redis.
//   - Detached: sent even if the caller's context has ended.
package acquire
