// Package guard is the one engine under the guards of this repository: for requests, calls, tasks, ticks and messages. It imports none
// of their frameworks. An adapter for one of them is called a place here: httplock and cronlock are places.
//
// There are two guards. [Exclusive] never runs two items of one name at the same time; it is made of a [core.Strategy]. [Once] lets an
// item of a name take effect once, and keeps a record; it is made of a [core.Client]. An item is a request, a task, a line: whatever
// the place handles. Both guards have one method that matters, Do. The place calls it for each item, with an [Ask], which is what the
// guard has to know about the item, and a [Run], whose functions the guard calls on the goroutine of Do. The result is an [Outcome] if
// the item ran, and otherwise the error for which it did not.
//
// This is a place at its smallest: a line has a key, and the same key gets the same answer again.
//
//	once, err := guard.NewOnce("line", locks, guard.Config{}) // at the start
//
//	func serve(ctx context.Context, key, payload string) (answer string, err error) {
//		hash := guard.Hash(nil, key)
//		var failure error // of the function
//		_, err = once.Do(ctx, guard.Ask{Work: core.Work{KeyHash: hash}, Name: "line:" + hash}, guard.Run{
//			Call: func(ctx context.Context) { answer, failure = handle(ctx, payload) },
//			Judge: func(o *guard.Outcome) {
//				if o.Err = failure; o.Returned && failure == nil {
//					o.Verdict, o.Value = guard.Completed, func() ([]byte, error) { return []byte(answer), nil }
//				}
//			},
//			Replay: func(_ context.Context, r core.Record) error {
//				answer = string(r.Value)
//				return nil
//			},
//		})
//		return answer, cmp.Or(err, failure)
//	}
//
// The examples of this package have it as a test, and a whole place with options, both guards, refusals and a server on TCP.
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
// What a place gives:
//
//	its name in hooks and logs       NewOnce, NewExclusive   always
//	the options that it takes        Place, Sort, Own        if users pass any
//	the key, or why there is none    Ask.Name, Ask.NoKey     always
//	the key for operators            Ask.KeyHash             always
//	what the item asks for           Ask.Fingerprint         if a key may come again with another payload
//	the function                     Run.Call                always
//	how it ended                     Run.Judge               if it can return a failure
//	the result, and how to repeat it Outcome.Value, Replay   if the same key gets the first result again
//	the answer to a refused item     the error of Do         always
//	another error, or another reason Run.Refuse              if what the engine has found is not what the place says
//	another lock, a deadline, a turn Run.Around, Ask.Turn    seldom
//
// At the start: declare a [Place] for each constructor, which takes [OnceTakes] or [ExclusiveTakes] and names of its own. Make own
// options with [Own], turn what the user passes into a [Config] with [Sort], and pass that to [NewOnce] or [NewExclusive]. One guard
// serves all items of a place, from any number of goroutines. [Must] is for short forms that panic. Users cannot import this package, so
// a place exports the options of it that it takes, with the names they have here:
//
//	type Option = guard.Option
//
//	// FailOpen lets a line run while Redis is unreachable. Defaults to refusing it.
//	func FailOpen() Option { return guard.FailOpen() }
//
// For each item:
//
//  1. Read the key. KeyHash is the [Hash] of its parts with the KeySecret of the Config. Name is that with a prefix that no other place
//     has, because it is the name in Redis; a lock and a record may have the same. Never put the key itself into either, nor into Label
//     or an error: others can read Redis and the log. If there is no key, set NoKey to the reason, and KeyFailed if the item may have
//     one. A key function that panics is one that failed: [Recovered].
//  2. Call Do with the context of the item. When that ends, so does the context of Call, unless Ask.Detached says otherwise. Call keeps what
//     the function returned in a variable. Judge reads the variable, and sets Verdict, Value and Err. It is called after a panic too:
//     then Returned is false, and the panic leaves Do after the record is written. Without Pass, Call also runs the items that need
//     no guard, for which Judge is not called. An Exclusive records nothing, so it ignores Value.
//  3. After Do: with an Outcome, answer with what the function returned. With neither an Outcome nor an error, Replay has the first
//     result. It has to look at Omitted of the record: then there is no result to repeat. With an error, the item did not run.
//
// If the item's context has ended, nobody may wait for an answer. Otherwise the error says what to answer. Ask errors.Is in this order,
// because an error may be several of them:
//
//	NoKey of the place                       the item is wrong
//	Mistaken                                 the program is wrong, no item will run
//	ErrFingerprintMismatch                   the item is wrong: its key belongs to another payload
//	ErrOutcomeUnknown                        an operator has to find out
//	ErrCompleted                             it has run before, and there is no result to repeat
//	ErrUndecided                             come again: the database of the proof is unreachable
//	ErrUnavailable                           come again: Redis is unreachable or refuses
//	ErrInProgress, ErrNotAcquired            come again: another item has the key
//	ErrTooManyKeys                           come again; only for a place that takes core.WithQuota
//	others, ErrClosed for instance           come again, to another process
//
// The same reasons are in NotRun.Reason of the hooks, as [ReasonBusy] and the others, unless Refuse sets the place's own.
//
// A place that delivers an item again until it is acknowledged, as a broker does, decides by the Outcome:
//
//	State is unknown                     park it for an operator, also after a panic, whose Outcome Judge has kept
//	State is completed                   acknowledge it, also if the function failed after core.Complete
//	Unrecorded is ErrStale               leave it: another run counts, and its end decides about the next delivery
//	Unrecorded is another error          acknowledge it if the function succeeded: the end is recorded in the background
//	otherwise                            leave it if the function failed, and acknowledge it if it succeeded
//
// For operators, [Once.Peek] reads the record of a name, which the place makes of the parts of the key as in step 1, and
// [Once.ResolveSeen] and [Once.ForgetSeen] change it; they check the prefix. Events of a place's own go to the log by the guard's
// method Event, and to the hooks by Incident. A panic is the place's to recover and log, after Do has let it through. If records have another form than what a user's transaction commits
// with [core.WithProof], set FromProof of the Config.
//
// A place passes tests/conformance/guard. The test of this package shows how to run the suite with a place. Its sender has to tell a
// first result from a repeated one. A new package needs a row in tests/architecture, which has what each package may import, and
// options with doc comments that end in "Defaults to", which tests/docs lists.
package guard
