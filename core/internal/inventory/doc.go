// Package inventory finds what is in a Redis: the keys of locks and records, a bounded number at a time, and the clients that
// hold them.
//
// # Lists
//
// A walk goes over the whole keyspace with SCAN. Its position is a cursor, which travels through the caller as text. So a
// walk has no state here, and may continue in another process.
//
// # Lists of a Cluster
//
// A walk scans one master after the other. The cursor has the slots that are done, and those that are scanned now:
//
//	choose ──► scan ──► scan ──► … ──► the master is done ──► choose
//	  ▲          │                       its slots that it has had all the time are done
//	  └──────────┘ the master has lost all of these slots
//
// The slots of a master are compared at the beginning and at the end of its scan. One that has moved meanwhile is not done, and
// is scanned at its new master. Keys of other slots are left out. So a key that exists during the whole walk is found, as SCAN
// promises for one server, unless its slot moves away and back within the scan of one master.
//
// A cursor of SCAN means nothing to another process: keys would be missing without notice. So the cursor says which server has
// answered. If that changes, after a restart or a failover, the scan begins again, and keys are found twice.
//
// # Instances of clients
//
// The instance of a client is what it says of itself, such as a host and a process. It is kept in Redis, so that others see who
// holds a lock: once for each client, not for each hold, because the name of an owner has the UUID of its client. So a lock
// costs nothing for it. An [Announcer] passes through these states:
//
//	not announced ── Touch: the first grant or wait ──► announced ── Touch, an interval later ──► written again
//	      ▲                                                │
//	      └── a minute later ── no answer, or refused ◄────┘ ── Leave ──► expires with the last lease
//
// A [Directory] asks once for each client that it does not know, and keeps the answers. No caller waits for that, so the
// first question about a client has no answer.
//
// Nothing depends on either: without an answer, an instance is not known.
//
// # Terms
//
//   - Pattern: what SCAN compares keys with, in which some characters have a meaning.
//   - Done: a slot whose keys were all found.
package inventory
