// Package guard is the one engine under the guards of this repository: for requests, tasks, ticks. It knows none of them. A place,
// which is a package like httplock or cronlock, reads the key of a work item, runs it and answers for it.
//
// There are two guards. [Exclusive] runs no two items of a name at the same time; it is made of a [core.Strategy]. [Once] lets an
// item of a name take effect once, and keeps a record; it is made of a [core.Client]. Both have one method that matters, Do. Its
// arguments are an [Ask], which is what the guard has to know about the item, and a [Run], which is what the place does with it.
// Its result is an [Outcome], or the error for which the item did not run. [Place.Sort] makes the [Config] from options. A
// [Runner] has the same method and guards nothing.
//
// # States
//
// An item goes through these states. What is in brackets is called there.
//
//	                     Do
//	   no key             │            in a run of its key
//	┌─────────────────────┼──────────────────────┐
//	│                 [Ask.Turn]                 │
//	│                  asking ◄─┐ busy, and      │
//	│                     ├─────┘ may wait       │
//	│      ┌──────────────┼────────────┐         │
//	│   refused        granted    unavailable    │
//	│      │              │            │         │
//	│      │              │    FailOpen, and no  │
//	│      │              │    run of the key    │
//	│      │              │    is known of       │
//	│      │              │            │         │
//	│      │              │       unguarded      │
//	│      │              ├────────────┘         │
//	│      │   error      │                      │
//	│      │◄─────── [Run.Around]                │
//	│      │         hook RunStart               │
//	│      │              │                      │
//	│      │           running ──► overrun       │
//	│      │         [Run.Call]  [Run.Overrun]   │
//	│      │              │                      │
//	│      │         [Run.Judge]                 │
//	│      │          recording                  │
//	│      │       [Outcome.Value]               │
//	├─────►│         hook RunEnd                 │
//	│  [Run.Replay]       │                      │
//	│  [Run.Refuse]       │                      │
//	│  hook NotRun        │                      │
//	│      │              │                      │
//	│    error         Outcome                passed
//	│                                        [Run.Pass]
//	└───── OptionalKey ─────────────────────────►│
//
// Running ends in one of three ways: Call returns, panics, or calls [runtime.Goexit]. All three are judged and recorded, and the
// panic or Goexit continues after that. What becomes of a record is decided in this order: what the function has said by
// [core.Complete], [core.Release] or [core.Hold]; what [Run.Judge] has set; the failure policy.
//
// # What the engine promises
//
//   - The context of Call ends with the lease, with [core.ErrLeaseLost] as its cause. Its Err asks the clock.
//   - A lease is renewed until Call returns, or for the time of [WithZombieGrace] after its context has ended.
//   - The end of a run is recorded although the item's context has ended. It waits for Redis up to the time of
//     [WithFinishTimeout]; after that the client retries it in the background.
//   - Without Redis, nothing runs unless [FailOpen] was given. Then the guard remembers what it has seen: a key whose run is in
//     progress behind it, or has ended behind it, or which another process had when Redis last replied, does not run again. Two
//     guards of one key know nothing of each other, so make one for each client and kind of work. Runs without Redis are recorded
//     when Redis replies.
//   - Each item that runs has one RunStart and one RunEnd of [core.Hooks], each other one NotRun, and an item that passes none.
//   - The first event of each kind is logged, then they are counted.
//
// # Writing a place
//
// Declare a [Place] for the options of each constructor, and call [Sort] and [NewExclusive] or [NewOnce]. Make options of your own
// with [Own]. Then, for each item:
//
//  1. Read the key. KeyHash is the [Hash] of its parts with the secret of [WithKeySecret], and Name is that with a prefix that no
//     other place has. If there is no key, set NoKey to the reason.
//  2. Call Do. Call keeps what the function returned in a variable; Judge reads it, and sets Verdict, Value and Err. Without Pass, Call
//     also runs what passes.
//  3. After Do: if there is an Outcome, answer with what the function returned. A nil Outcome without an error was answered by
//     Replay. Otherwise answer by the error, with errors.Is, in this order: the error of a context that has ended,
//     [core.ErrUnavailable], [core.ErrInProgress], [core.ErrNotAcquired], [core.ErrCompleted], [core.ErrFingerprintMismatch],
//     [core.ErrOutcomeUnknown], [core.ErrTooManyKeys].
//
// A place that delivers an item again until it is acknowledged, as a broker does, decides by the Outcome:
//
//	State is unknown                     park it for an operator, also after a panic, whose Outcome Judge has kept
//	State is completed                   acknowledge it, also if the function failed after core.Complete
//	Unrecorded is ErrStale               leave it: another run counts, and its end decides about the next delivery
//	Unrecorded is another error          acknowledge it if the function succeeded: the end is recorded in the background
//	otherwise                            leave it if the function failed, and acknowledge it if it succeeded
//
// Events of its own go to the log by Event of the guard, and to the hooks by Incident.
//
// The example is a whole place, for a line protocol over TCP. A place passes when it passes tests/conformance/guard.
package guard
