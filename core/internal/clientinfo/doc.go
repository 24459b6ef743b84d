// Package clientinfo keeps in Redis, and finds there, what clients say of themselves: the instance of the client that holds
// a lock, such as a host and a process.
//
// It is kept once for each client, not for each hold: the name of an owner has the UUID of its client. So a lock costs
// nothing for it. An [Announcer] passes through these states:
//
//	not announced ── Touch: the first grant or wait ──► announced ── Touch, an Interval later ──► written again
//	      ▲                                                │
//	      └── a minute later ── no answer, or refused ◄────┘ ── Leave ──► expires with the last lease
//
// A [Directory] asks once for each client that it does not know, and keeps the answers. No caller waits for that, so the
// first question about a client has no answer.
//
// Nothing depends on either: without an answer, an instance is not known.
package clientinfo
