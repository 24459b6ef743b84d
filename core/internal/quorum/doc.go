// Package quorum is the protocol of a lock on a majority of independent servers: the strategy of a Redlock.
//
// A [Strategy] is a script.Strategy that runs the scripts of a Mutex on each server. The answer of a majority is the
// answer. No operation waits for a minority: commands that a server has missed are sent again in the background.
//
// Source: Redis documentation, "Distributed Locks with Redis" (Redlock). It does not have tokens (and so no second phase of
// a round), read repair, nor the check of identities.
//
// # A vote round
//
// To acquire takes vote rounds, each with a hold ID of its own:
//
//	voting ──┬── a majority grants ──► committing ──┬── a majority has the token, in time ──► granted
//	  ▲      │                                      └── too few have it, or too late ───────► error
//	  │      ├── too few servers answer, or a re-entry is unclear ──────────────────────────► error
//	  │      ├── a refusal names a committed holder, or no server grants ───────────────────► busy
//	  │      └── some grant, some refuse, and no holder is committed ──┐
//	  └───────────── pause, then a new hold ID ◄── split vote ◄────────┘ for splitPatience, then busy
//
// What follows for each server:
//
//	asked ──┬── granted ──────────────────┬── the round is won ────► the token is committed
//	        │                             └── the round is lost ───► the hold is released
//	        ├── no answer, or a failure ──┬── the round is won ────► counts as a commit that failed
//	        │                             └── the round is lost ───► the hold is released: it may be there
//	        └── refused, not executed ─────────────────────────────► there is no hold to release
//
// The second phase is needed because tokens must grow from one majority to the next. Without it, with the servers s1 to s3:
//
//  1. Client A is granted the lock by s1 with the token 20 and by s2 with 11. Its lease has the token 20.
//  2. The lease ends.
//  3. Client B is granted the lock by s2 with 12 and by s3 with 13. Its lease has the token 13, which is smaller.
//
// The commit of step 1 writes 20 to s2, so s2 draws 21 in step 3. Any two majorities have such a server in common.
//
// # A renewal
//
// Each server gets one command, and the answers are counted:
//
//	counting ──┬── a majority confirms ───────────────► renewed; servers that have lost the hold: read repair
//	           ├── a majority has lost the hold ──────► lost: another client may have had the lock meanwhile
//	           └── all have answered, neither is so ──► error: the lease lasts until its validity ends
//
// # The identity of a server
//
// A server to which two clients connect would have two votes. So each node is verified before its first vote:
//
//	unverified ──┬── no other node has the run ID ────────► verified
//	    ▲        ├── the server does not tell it ─────────► verified, with a warning in the log
//	    │        ├── no answer ──┐
//	    └────────┼───────────────┘ asked again before the next request
//	             └── another node has the run ID ─────────► unverified: the two are the same server
//
// # Terms
//
//   - Node: one of the servers, with its own timeout for each request and its own pending releases.
//   - Vote: a grant or a refusal of one server in a round.
//   - Committed: a majority has written the token. Only then is the lease returned. A refusal says whether the
//     holder's token is committed, and so whether another client has won.
//   - Split vote: several clients have been granted the lock by a minority each.
//   - Read repair: a server that has lost a hold is granted it again by a renewal that a majority has confirmed.
//   - Suspect: a server that has failed to answer lately. It is asked last, and not waited for after a refusal.
package quorum
