// Package guardconformance is the suite that every place with guards has to pass: what becomes of a request, a task or a tick
// behind Exclusive and Once must not depend on the place. Each test runs against a real Redis, through a relay that breaks the
// connection where the test says so. It knows of the place no more than [Place] says.
//
//	func TestGuards(t *testing.T) {
//		guardconformance.Run(t, guardconformance.Place{...})
//	}
//
// What only one place has is not its concern.
package guardconformance

import (
	"context"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/guard"
)

// Place is a place under test.
type Place struct {
	// Work has the Place and Label that hooks are to be told.
	Work core.Work
	// New returns a place whose guard is of that kind and runs fn.
	New func(t testing.TB, locks *core.Client, kind Kind, fn Func, opts ...guard.Option) Deliver
	// Lacks are the names of the tests that make no sense for the place, each with the reason.
	Lacks map[string]string
}

// Kind is which guard.
type Kind string

// The kinds.
const (
	Once      Kind = "Once"
	Exclusive Kind = "Exclusive"
)

// Func is the user's function. It gets the payload of the item and returns a value, where the place has such.
type Func func(ctx context.Context, payload string) (string, error)

// Deliver delivers a work item, and returns when the sender knows what became of it, or when ctx has ended. The end of ctx ends
// the item's context too. An empty key is none.
type Deliver func(ctx context.Context, key, payload string) Result

// Result is what the sender knows.
type Result struct {
	Code  Code
	Value string // of Ran and Replayed
}

// Code is what became of an item.
type Code string

// The codes.
const (
	Ran         Code = "ran"
	Failed      Code = "failed"    // the function returned an error
	Broken      Code = "broken"    // the function did not return
	Replayed    Code = "replayed"  // as if it had run, with the result of an earlier run
	Completed   Code = "completed" // refused: an earlier run has completed
	Busy        Code = "busy"      // refused or to come again: another one runs
	Unknown     Code = "unknown"   // refused: the outcome of an earlier run is unknown
	Mismatch    Code = "mismatch"  // refused: the key belongs to another payload
	Unavailable Code = "unavailable"
	Undecided   Code = "undecided" // refused or to come again: the proof could not be asked
	NoKey       Code = "no key"
	Erroneous   Code = "erroneous" // refused: a mistake that no retry mends
	Left        Code = "left"      // the sender's ctx has ended first
)

// Run runs the suite.
func Run(t *testing.T, p Place) {
	for _, kind := range []Kind{Once, Exclusive} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			for _, test := range tests {
				if len(test.kinds) > 0 && !slices.Contains(test.kinds, kind) {
					continue
				}
				t.Run(test.name, func(t *testing.T) {
					t.Parallel()
					if reason := p.Lacks[test.name]; reason != "" {
						t.Skip(reason)
					}
					test.run(t, newStage(t, p, kind))
				})
			}
		})
	}
}

// tests is the table.
var tests = []struct {
	name  string
	kinds []Kind // empty: all
	run   func(*testing.T, *stage)
}{
	{"RunsAndTellsTheHooks", nil, testRuns},
	{"CompletedRunIsNotRepeated", []Kind{Once}, testReplay},
	{"OmittedValueIsNotReplayed", []Kind{Once}, testOmitted},
	{"FinishedRunFreesTheKey", []Kind{Exclusive}, testFree},
	{"FailureIsRetried", []Kind{Once}, testFailure},
	{"FailureIsHeldByPolicy", []Kind{Once}, testHeldFailure},
	{"PanicFreesTheKeyAndContinues", nil, testPanic},
	{"GoexitFreesTheKey", nil, testGoexit},
	{"PanicIsHeldByPolicy", []Kind{Once}, testHeldPanic},
	{"PanicOfAHookLeavesNothing", nil, testHookPanic},
	{"CompleteOutweighsAFailure", []Kind{Once}, testComplete},
	{"CompleteOutweighsALaterRelease", []Kind{Once}, testReleaseAfterComplete},
	{"ReleaseOutweighsASuccess", []Kind{Once}, testRelease},
	{"HoldOutweighsASuccess", []Kind{Once}, testHold},
	{"ExclusiveHasNoRecordToComplete", []Kind{Exclusive}, testNotGuarded},
	{"NoKeyIsRefused", nil, testNoKey},
	{"NoKeyPassesIfOptional", nil, testOptionalKey},
	{"OtherPayloadIsRefused", []Kind{Once}, testMismatch},
	{"NameBeginsWithThePlace", nil, testName},
	{"RawKeyIsNowhere", nil, testRawKey},
	{"KeySecretChangesAllHashes", nil, testSecret},
	{"ForeignValueAtTheKeyIsAMistake", nil, testWrongType},
	{"SecondIsBusy", nil, testBusy},
	{"SecondWaits", nil, testWaits},
	{"SenderLeavesWhileItWaits", nil, testLeavesWaiting},
	{"SlowRunIsRenewed", nil, testSlow},
	{"LossEndsTheContext", nil, testLost},
	{"LateEndDoesNotCount", []Kind{Once}, testLate},
	{"CrashAfterTheEffectIsRetried", []Kind{Once}, testCrashRetried},
	{"CrashAfterTheEffectIsHeldByPolicy", []Kind{Once}, testCrashHeld},
	{"CrashAfterCompleteIsNotRepeated", []Kind{Once}, testCrashCompleted},
	{"ProofIsFoundByTheTransaction", []Kind{Once}, testProofFound},
	{"ProofIsAskedAfterACrash", []Kind{Once}, testProofAfterCrash},
	{"OutageOfTheProofIsNoneOfRedis", []Kind{Once}, testProofAway},
	{"ProofOfOtherPayloadIsRefused", []Kind{Once}, testProofMismatch},
	{"FailureAfterTheProofIsLogged", []Kind{Once}, testProofThenFailure},
	{"SenderLeavesAndTheEndIsRecorded", nil, testLeaves},
	{"OverrunLosesItsLease", nil, testOverrun},
	{"LostReplyOfBegin", nil, testLostBegin},
	{"LostReplyOfEnd", nil, testLostEnd},
	{"LostReplyOfDeclare", []Kind{Once}, testLostDeclare},
	{"OutageBeforeIsRefused", nil, testOutageBefore},
	{"OutageBeforeRunsIfFailOpen", nil, testOpenBefore},
	{"OutageBeforeAndHoldWithoutRecord", []Kind{Once}, testOpenHeld},
	{"OutageDuringIsRecordedLater", nil, testOutageDuring},
	{"OutageDuringKeepsTheKeyIfFailOpen", nil, testOpenDuring},
	{"OutageAfterDoesNotRepeatIfFailOpen", []Kind{Once}, testOpenAfter},
	{"OutageAfterBusyIsNotOpen", nil, testOpenBusy},
	{"OutageIsLoggedOnce", nil, testLoggedOnce},
}
