// Package waiters has the callers of this process that wait for a lock.
//
// Where a lock has no queue in Redis, the [Lists] have one local list for each name, and only the first waiter of a list
// asks Redis. Where it has one, [Heartbeats] keep the places of all waiters in it. A [Limit] bounds both.
//
//	entered ──► behind the first ──► first ──► granted, or its time is up ──► left
//	               │
//	               └── dismissed with the answer to the first (Share, FailAll), or to ask alone
//
// # Terms
//
//   - First: the only waiter of a list that asks Redis.
//   - Question: what the answer to a waiter depends on. Waiters with equal questions get equal answers.
//   - Place: a waiter's place in a queue in Redis.
//   - Heartbeat: the command that keeps places, and brings the wait state of the lock.
package waiters
