// Package script is what locks and records are in Redis: their keys, their scripts, and the strategies that call the scripts.
// The files of [Once] begin with once.
//
// # Locks
//
// A [Strategy] acquires, renews and releases a [Hold] with one script each. It knows nothing of waiting, of retries or of
// leases. The scripts are in lua/lock and lua/once, one file an operation; files whose names end in _common are parts that
// several scripts share. Each script runs atomically on one server, and every request of a hold is idempotent: it may be sent
// again after an unknown outcome.
//
//	Mutex ───────► acquire, release, redlock_commit      one owner, without order between processes
//	Queue ───────► queue_acquire, queue_release          in the order of arrival: fair, reading, writing
//	Once ────────► once/begin, complete, hold, release   a run, and its record
//	Instance ────► renew, raise, bar, deployment_id      what all of them have in common, and what operators do:
//	               queue_heartbeat, pass_turn, force, inspect, server_run_id
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
// # Once
//
// [Once] is the strategy of a Once. An attempt is a [Hold]: its lease is renewed and waited for like the lease of a lock. Only the
// state in Redis differs. The record of a key has one of these states:
//
//	none ── begin ──► running ── complete, resolve ──► completed
//	  ▲                │  │
//	  └── release ─────┘  ├── hold ──────────────────► unknown ── resolve ──► completed
//	                      └── the lease expires ─────► retry (begin may follow), unknown or completed
//
// Which state an expired lease leads to was written when the attempt began, or by declare. Forget deletes the record, and so
// does the end of its retention.
//
// Each script that ends an attempt has one of three answers. [Stale] means that a later attempt has ended in the record, or that
// the record was resolved. [Recreated] means that the record was lost or overwritten meanwhile and is written anew. [Recorded] is
// the usual one. Complete and Hold have a fourth one: another attempt is running.
//
// So an attempt can record its end even after its lease has expired. A later attempt that was released, withdrawn, or
// that has crashed before any effect that is known, does not keep it from that: it did nothing, and the earlier run
// did. While a later attempt is running, an unconfirmed end is sent again and again in the background. See
// [Unconfirmed] for what a client does before it begins the same key again.
//
// # An end of a Once without an answer
//
// The client sends an end again if it had no answer. Each copy must change nothing that an earlier one has done, whatever has
// happened between them. What Redis has decides what a copy of Complete or Hold finds, see lua/once/finish.lua:
//
//	(1) the attempt runs in the record   the end is recorded
//	(2) a result, for 15 s               that result
//	(3) the end of this very token       1: an earlier copy has recorded it
//	(4) a mark of this token             1: an earlier copy has recorded it, and it was forgotten or resolved since
//	(5) the end of another attempt,      0: stale. The result is kept
//	    or of a resolve
//	(6) another attempt that is running  {0, ms, id}: nothing is written, and nothing is kept
//	(7) no record, or another attempt's  2: it is written anew. The result is kept
//	    attempt that was released, or
//	    whose lease has expired with
//	    the outcome retry
//
// A result is kept in case 1 only if a request of the begin had no answer, if an earlier copy of the end had none, or if the
// retention is shorter than the result would be kept. Not otherwise, because a completed record and one of unknown outcome
// change only by Forget and Resolve, which leave marks, and by the end of the retention.
//
// These are the rows of TestEndWithoutAnswer. The first copy is executed and its answer lost, or it arrives late, after the second:
//
//	first copy   before it   between the copies     second copy   the late one   the record at last
//	executed     nothing     nothing                1 (case 3)                   the end
//	executed     nothing     forgotten              1 (4)                        none
//	executed     nothing     forgotten, begun       1 (4)                        of the other attempt, running
//	executed     nothing     forgotten, done        1 (4)                        of the other attempt, completed
//	executed     nothing     forgotten twice        1 (4)                        none
//	executed     nothing     held, then resolved    1 (4)                        resolved
//	executed     nothing     resolved, forgotten    1 (4)                        none
//	executed     nothing     expired: a short       1 (2)                        none
//	                         retention
//	executed     nothing     lost                   2 (7)                        the end, anew
//	executed     nothing     lost, begun            0 (6)                        of the other attempt, running
//	executed     forgotten   nothing                2 (2)                        the end, anew
//	executed     forgotten   lost                   2 (7)                        the end, anew
//	executed     overtaken   nothing                0 (6)                        of the other attempt, running
//	executed     overtaken   released or expired    2 (7)                        the end, anew
//	executed     overtaken   done                   0 (5)                        of the other attempt, completed
//	executed     overtaken   nothing                2 (2)                        the end, anew
//	             and released
//	executed     overtaken   nothing or forgotten   0 (2)                        of the other attempt, or none
//	             and done
//	late                     nothing                1 (1)         1 (3)          the end
//	late                     forgotten              1 (1)         1 (4)          none
//	late                     forgotten, begun       1 (1)         1 (4)          of the other attempt, running
//	late                     held, then resolved    1 (1)         1 (4)          resolved
//	late                     lost                   1 (1)         2 (7)          the end, anew
//	late                     lost, begun            1 (1)         0 (6)          of the other attempt, running
//
// Lost means by FLUSHALL, eviction, DEL or a failover. The rows "lost, begun" cannot be told from an attempt that was
// overtaken. After a 0 of case 6 the client sends an end that was not confirmed again, until the other attempt has ended: case
// 5 or 7. A caller that waits for the answer gets a stale end, and it is not sent again. No result is kept
// then, because a begin that was given up may run for moments, until its withdrawal arrives. It must not erase the end of a run
// that took effect.
//
// If a failover has lost the end alone, the record still has the running attempt: case 1. TestEndOfABeginInDoubt holds that a late
// request of the begin is refused, and TestBeginAfterItsRelease the same for a begin that was given up.
//
// A release is always remembered for 15 s, because the next attempt overwrites the record's own account of it.
//
// # Terms
//
//   - Hold: one acquisition, with an ID that is never used again. One owner may have several holds (re-entry).
//   - Released: the memory of the end of a hold. A request of the hold that arrives later is refused.
//   - Bar: to write that memory for a granted hold, because a repeated request of it may still arrive.
//   - Share: a hold of a reader, which has its own TTL.
//   - Token: the fencing token, greater for each later grant.
//   - Terms: what an attempt says of the record that it is to leave, such as its retention.
//   - Group: the records of one client whose keys have the same hash tag. A group can be bounded (quota).
//   - Refusal: why an attempt may not begin, or a record cannot be resolved.
//   - Outcome on expiry: what a running attempt counts as once its lease has expired.
package script
