// Package catalog finds the keys of a Redis, a bounded number at a time, for lists of locks and records.
//
// A [Walk] goes over the whole keyspace with SCAN. Its position is a [Cursor], which travels through the caller as text. So a
// walk has no state here, and may go on in another process.
//
// # A Cluster
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
// # Terms
//
//   - Pattern: what SCAN compares keys with, in which some characters have a meaning.
//   - Done: a slot whose keys were all found.
package catalog
