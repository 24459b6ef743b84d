// Package acquire runs one acquisition of a lock: requests until Redis grants the hold or there is a reason to stop, the wait
// with the other callers of this process, and the release of holds.
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
//	  │       ├── refused, so that waiting does not help ──► end: script.Refusal
//	  │       ├── an error that a repetition would meet ───► end: FailedError
//	  │       ├── granted too late, or released before ────► replaceHold ──┐
//	  │       └── no answer, or a transient error ─────────────────────────┤
//	  │                                                                    ├── for OutageLimit ──► end: FailedError
//	  └──────────────────────────── pause ◄────────────────────────────────┘
//
// In each state the end of the context, of the longest wait, or of the client ends the acquisition with ErrTimeUp. An
// acquisition without a lease leaves no hold: cleanUp releases what may have been granted or queued, in the background, until
// Redis confirms it.
//
// # The callers that wait
//
// The callers of this process that wait for a lock wait in one of two places. Where the lock has no queue in Redis, the [Lists]
// have one local list for each name, and only the first waiter of a list asks Redis. Where it has one, [Heartbeats] keep the
// places of all waiters in it. [Waits] bounds both, and [Calls] has all that wait in either, for operators.
//
// A waiter of a list passes through these states:
//
//	enter ──► behind others ── those before it have left ──► first ── granted, refused, or its time is up ──► leave
//	               │                                           ▲
//	               │            enter of an empty list ────────┘
//	               ├── its time is up ──────────────────────────────────────────────────────────────────────► leave
//	               ├── dismissed: with the answer to the first (share, failAll), or to ask alone (share) ───► removed
//	               └── first while a chain runs ──┬── a holder hands its hold over (HandOver) ──────────────► removed
//	                                              └── the chain ends ──► first
//
// A place in a queue in Redis has these:
//
//	register ──► waiting ◄── heartbeat: so many waiters are before it
//	                │ └───── heartbeat: the place is gone, or the owner has the lock ──► MustAsk ── update ──► waiting
//	                └── unregister ──► without heartbeats, Redis drops the place after PlaceTTL
//
// An [Observer] waits for changes of leadership. A message is only a hint, so it also polls:
//
//	reading ──► nothing new, an older answer, or an error ──► waiting ── a message, or the poll interval is over ──► reading
//	   └──────► a new state ──► its caller is told, and works ──► waiting
//
// While the caller works, nothing is read and nothing is kept. So a slow caller gets the newest state only.
//
// # Terms
//
//   - Caller: the call of Lock, TryLock or Begin that the acquisition serves. It makes the lease.
//   - Uncertain: a request has an unknown outcome, so its hold may be in Redis, or may still get there.
//   - Parent: the lease under which the request is a re-entry.
//   - Named owner: an owner that WithOwner has named. Another process may hold the lock for it.
//   - First: the only waiter of a local list that asks Redis.
//   - Detached: sent even if the caller's context has ended.
//   - Question: what the answer to a waiter depends on. Waiters with equal questions get equal answers.
//   - Chain: one grant of Redis that callers of this process hand over to each other, see handover.go.
//   - Dismissed: removed from the list by the first waiter, with an error that the wait returns.
//   - Registered: the client is in the set of waiting clients in Redis, so that a release can wake it.
//   - Place: a waiter's place in a queue in Redis.
//   - Heartbeat: the command that keeps places, and brings the wait state of the lock.
//   - Vacancy: a state of an election without a leader.
//   - Unproclaimed: a leader that was granted the lock, and has not written its value yet.
package acquire
