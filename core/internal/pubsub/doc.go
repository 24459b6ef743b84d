// Package pubsub notifies waiters of releases.
//
// [Subscriptions] has one pub/sub connection for all channels of a client, in a Cluster one per master. A [Subscriber] is
// one waiter on one channel. A notification is only a hint, because messages get lost with connections, buffers and
// failovers. So every waiter polls as well.
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
// # Terms
//
//   - Address: the first word of a message. A subscriber with an address receives only the messages that begin with it. A
//     message for an address is its waiter's ID, and the token if the message grants the lock.
//   - Client number: the number under which a release wakes one client (wake-one), see wake_one.go.
//   - Grace: how long the other clients leave a lock to the client that was woken.
package pubsub
