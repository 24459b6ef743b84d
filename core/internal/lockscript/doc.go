// Package lockscript is what a lock is in Redis: its keys, its scripts, and the strategies that call the scripts.
//
// A [Strategy] acquires, renews and releases a [Hold] with one script each. It knows nothing of waiting, of retries or of
// leases. The scripts lie in lua/, one file an operation; files whose names end in _common are parts that several scripts share. Each
// script runs atomically on one server, and every request of a hold is idempotent: it may be sent again after an unknown
// outcome.
//
//	Mutex ───────► acquire, release, redlock_commit      one owner, without order between processes
//	MutexBatch ──► acquire_all, release                  several mutexes of one slot, all or none
//	Queue ───────► queue_acquire, queue_release          in the order of arrival: fair, reading, writing
//	OneRedis ────► renew, raise, bar, deployment_id      what all of them have in common
//	Instance ────► queue_heartbeat, wake_next_if_free, force, inspect, summary, server_run_id
//
// A hold has these states in Redis:
//
//	none ── acquire ──► held ── release, force, or its TTL expires ──► ended
//	 │ └─── acquire ──► queued ── a release of another hold ──► held
//	 │                    └────── release, or no heartbeat for PlaceTTL ──► ended
//	 └───── release ──► ended, before its request has arrived
//
// A release writes the memory of the end ([Keys.Released]). While there is one, Redis refuses every request of that hold. So a
// request that is delayed in the network never takes a lock for a caller that has left.
//
// # Terms
//
//   - Hold: one acquisition, with an ID that is never used again. One owner may have several holds (re-entry).
//   - Released: the memory of the end of a hold. A request of the hold that arrives later is refused.
//   - Bar: to write that memory for a granted hold, because a repeated request of it may still arrive.
//   - Share: a hold of a reader, which has its own TTL.
//   - Token: the fencing token, greater for each later grant.
package lockscript
