// Package waiters has the callers of this process that wait for a lock, and those that observe an election.
//
// Where a lock has no queue in Redis, the [Lists] have one local list for each name, and only the first waiter of a list
// asks Redis. Where it has one, [Heartbeats] keep the places of all waiters in it. A [Limit] bounds both, and [Calls] has all that
// wait in either, for operators.
//
// A [Waiter] of a list passes through these states:
//
//	Enter ──► behind others ── those before it have left ──► first ── granted, refused, or its time is up ──► Leave
//	               │                                           ▲
//	               │            Enter of an empty list ────────┘
//	               ├── its time is up ──────────────────────────────────────────────────────────────────────► Leave
//	               └── dismissed: with the answer to the first (Share, FailAll), or to ask alone (Share) ───► removed
//
// A [Place] in a queue in Redis has these:
//
//	Register ──► waiting ◄── heartbeat: so many waiters are before it
//	                │ └───── heartbeat: the place is gone, or the owner has the lock ──► MustAsk ── Update ──► waiting
//	                └── Unregister ──► without heartbeats, Redis drops the place after PlaceTTL
//
// An [Observer] waits for changes of the lead. A message is only a hint, so it also polls:
//
//	reading ──► nothing new, an older answer, or an error ──► waiting ── a message, or the poll interval is over ──► reading
//	   └──────► a new state ──► its caller is told, and works ──► waiting
//
// While the caller works, nothing is read and nothing is kept. So a slow caller is told of the newest state only.
//
// # Terms
//
//   - First: the only waiter of a list that asks Redis.
//   - Question: what the answer to a waiter depends on. Waiters with equal questions get equal answers.
//   - Dismissed: removed from the list by the first waiter, with an error that the wait returns.
//   - Registered: the client is in the set of waiting clients in Redis, so that a release can wake it.
//   - Place: a waiter's place in a queue in Redis.
//   - Heartbeat: the command that keeps places, and brings the wait state of the lock.
//   - Vacancy: a state of an election without a leader.
//   - Unproclaimed: a leader that was granted the lock, and has not written its value yet.
package waiters
