// Package transport sends scripts to Redis.
//
// An [Executor] sends all commands of a client to one server, one Sentinel group or one Cluster. It returns as soon as
// the caller's context ends, whatever the connection does. A command takes one of two paths:
//
//	Run ── no other command is queued or in flight ──► direct path: sent on the caller's goroutine
//	  └─── otherwise ────────────────────────────────► batch queue: sent by the next free sender, with others
//
// Each server has a [Node] with its batch queues. In a Cluster the slot of the first key decides on the node.
//
// A command that must be confirmed, such as a release, can be added to the [Pending] commands of its server. They are
// sent again until the server confirms them.
//
// A command in a batch queue passes through these states. A command on the direct path has none of them:
//
//	queued ── a sender takes it ──────────────► sent ── reply, error or panic ──► answered
//	  └────── its caller withdraws it in time ─► withdrawn: never sent, ErrNotSent
//
// A caller that stops waiting for a sent command gets [ErrNotAnswered], because the command may still be executed.
//
// # Terms
//
//   - Command: one run of a script, with its keys and arguments, its reply or its error.
//   - Outcome: what an error says of the execution. A command whose outcome is [Unknown] may have been executed.
//   - Batch queue: the queue of a server whose commands share round trips (group commit).
//   - Sender: a goroutine that sends the batches of one queue. A sender is stalled if its batch has no answer within
//     [StallTimeout].
//   - Ack: the acknowledgement of a write by replicas, with WAIT.
//   - Batch group: goroutines whose first commands are sent in one batch.
//   - Detached: the command is sent even after the context of its caller has ended.
//   - Outage: failures in a row, after which the client gives up or goes on, depending on the limit of the caller.
//   - Refresh: reading again which master of a Cluster owns which slots.
package transport
