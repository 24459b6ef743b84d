// Package oncescript is what a Once is in Redis: its record, its scripts, and the [Strategy] that calls them.
//
// An attempt is a lockscript.Hold: its lease is renewed and waited for like that of a lock. Only the state in Redis
// differs. The record of a key has one of these states:
//
//	none ── begin ──► running ── complete, resolve ──► completed
//	  ▲                │  │
//	  └── release ─────┘  ├── hold ──────────────────► unknown ── resolve ──► completed
//	                      └── the lease expires ─────► retry (begin may follow), unknown or completed
//
// Which state an expired lease leads to was written when the attempt began, or by declare. Forget deletes the record, and so
// does the end of its retention.
//
// Each script that ends an attempt has one of three answers. [Stale] means that a later attempt has begun, or that the
// record was resolved. [Recreated] means that the record was lost meanwhile and is written anew. [Recorded] is the usual
// one. So an attempt can record its end even after its lease has expired, unless another attempt has begun.
//
// # Terms
//
//   - Terms: what an attempt says of the record that it is to leave, such as its retention.
//   - Group: the records of one client whose keys have the same hash tag. A group can be bounded (quota).
//   - Refusal: why an attempt may not begin, or a record cannot be resolved.
//   - Outcome on expiry: what a running attempt counts as once its lease has expired.
package oncescript
