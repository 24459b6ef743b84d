// Package redlock is the protocol of a lock on a majority of independent servers.
//
// A [Quorum] is a lockscript.Strategy that runs the scripts of a Mutex on each server. The answer of a majority is the
// answer. No operation waits for a minority: commands that a server has missed are sent again in the background.
//
// To acquire takes vote rounds:
//
//	round: all servers are asked ──► a majority grants ──► the greatest token is committed to the majority ──► won
//	          │                                                 └── too late, or a commit fails ──► all are released
//	          ├──► a majority refuses, or another client has won ──────────────────────────────────────────► busy
//	          └──► no client can have a majority (split vote) ──► a random pause, one server after the other, again
//
// Source: Redis documentation, "Distributed Locks with Redis" (Redlock). Why the second phase: without a committed token,
// the next majority could grant a smaller one.
//
// # Terms
//
//   - Node: one of the servers, with its own timeout for each request and its own pending releases.
//   - Committed: a majority has written the token. Only then is the lease returned.
//   - Read repair: a server that has lost a hold is granted it again by a renewal that a majority has confirmed.
//   - Suspect: a server that has failed to answer lately. It is asked last.
package redlock
