// Package transport is the way to Redis and back: it sends scripts, subscribes to messages, and looks at the settings of the
// servers. Each of these has its section.
//
// # Commands
//
// An [Executor] sends all commands of a client to one server, one Sentinel group or one Cluster. It returns as soon as
// the caller's context ends, whatever the connection does. A command takes one of two paths:
//
//	Run ── no other command is queued or in flight ──► direct path: sent on the caller's goroutine
//	  └─── otherwise ────────────────────────────────► batch queue: sent by the next free sender, with others
//
// Each server has a node with its batch queues. In a Cluster the slot of the first key decides on the node.
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
// # Subscriptions
//
// [Subscriptions] notifies waiters of releases. It has one pub/sub connection for all channels of a client, in a Cluster one
// per master. A [Subscriber] is one waiter on one channel. A notification is only a hint, because messages get lost with
// connections, buffers and failovers. So every waiter polls as well.
//
// A channel passes through these states, all guarded by the mutex of Subscriptions:
//
//	assigned to a master ──► requested (SUBSCRIBE sent) ──► subscribed (confirmed)
//	     ▲                                                     │
//	     └──────── connection lost, or the slot moved ◄────────┘
//
// A connection that leaves a channel requested for confirmTimeout is replaced. If no connection confirms it although the server
// answers commands, the client warns once, because waiters are late then: they only poll.
//
// Each confirmation notifies all subscribers of the channel, because messages may have been missed before it.
//
// Each connection has one goroutine for a master of a Cluster, or for Redis elsewhere. While channels are assigned to the
// master, the goroutine connects again after every failure. Without subscribers a channel stays for maxIdleRounds, and then
// the connection ends with its last channel.
//
// # The check of settings
//
// [SettingsCheck] looks for settings with which Redis loses locks or refuses them, and warns of them in the log. It reads
// INFO, which more users may call than CONFIG: the eviction policy, the role, the version, replicas and the append-only file.
// It asks CONFIG GET only whether a server makes snapshots, and only as the default user of a server that has nothing else. It
// passes through these states:
//
//	first reply of Redis ── Start ──► inspecting ──┬── every server has answered, or refused INFO ──► finished
//	                                      ▲        └── no answer ──► pause ──┬── for the last time ──► finished
//	                                      └────────────────────────────────┘
//
// Nothing depends on its result: a lock neither waits for it nor fails because of it. So an error is logged at debug level
// only, and a user without the right to INFO gets no warnings.
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
//   - Outage: failures in a row, after which the client gives up or continues, depending on the limit of the caller.
//   - Refresh: reading again which master of a Cluster owns which slots.
//   - Address: the first word of a message. A subscriber with an address receives only the messages that begin with it. A
//     message for an address is its waiter's ID, and the token if the message grants the lock.
//   - Client number: the number under which a release wakes one client (wake-one), see subscriptions.go.
//   - Grace: how long the other clients leave a lock to the client that was woken.
package transport
