package cronlock

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/seal"
	guardconformance "github.com/holdfast-go/holdfast/tests/conformance/guard"
)

const (
	nameAndTime = "a job has a name, and a tick its time"
	notRepeated = "a failed tick does not run again"
)

// noTick are tests of records that make no sense for ticks.
var noTick = map[string]string{
	"PanicFreesTheKeyAndContinues": notRepeated,
	"GoexitFreesTheKey":            notRepeated,
	"PanicOfAHookLeavesNothing":    "a hook that panics counts as a function that does, see TestPanics",
	"SecondWaits":                  "a tick that runs elsewhere is watched with WithFailover only, see TestOthersWatch",
	"OutageIsLoggedOnce":           "each skipped tick has a line",
}

// TestConformance: what jobs have in common with requests and tasks.
func TestConformance(t *testing.T) {
	t.Parallel()
	tick := time.Now().Truncate(time.Second)
	guardconformance.Run(t, guardconformance.Place{
		Work: core.Work{Place: "cron", Label: "job"},
		Lacks: map[string]string{
			"FailureIsRetried":             notRepeated,
			"FailureIsHeldByPolicy":        notRepeated,
			"PanicIsHeldByPolicy":          notRepeated,
			"ReleaseOutweighsASuccess":     "another replica may run it with WithFailover only, see TestDispositionOfARun",
			"CrashAfterTheEffectIsRetried": "another replica may run it with WithFailover only, see TestDeadRunner",
			"LateEndDoesNotCount":          "another replica may run it with WithFailover only, see TestDeadRunner",
			"OverrunLosesItsLease":         "a run is too long after its WithTimeout only, see TestRunThatDoesNotStop",
			"OmittedValueIsNotReplayed":    "a tick has no value",
			"NoKeyIsRefused":               nameAndTime,
			"RawKeyIsNowhere":              "the name of a job is no secret",
			"KeySecretChangesAllHashes":    "the name of a job is no secret",
			"NoKeyPassesIfOptional":        nameAndTime,
			"OtherPayloadIsRefused":        nameAndTime,
			"ProofOfOtherPayloadIsRefused": nameAndTime,
			"FailureAfterTheProofIsLogged": notRepeated, // and each failure is logged
		},
		New: func(
			t testing.TB, locks *core.Client, kind guardconformance.Kind, fn guardconformance.Func, opts ...guard.Option,
		) guardconformance.Deliver {
			if reason := noTick[path.Base(t.Name())]; reason != "" && kind == guardconformance.Once {
				t.Skip(reason)
			}
			place := jobPlace("cronlock.AddFunc")
			if kind == guardconformance.Exclusive {
				place = exclusivePlace
			}
			opts = slices.DeleteFunc(slices.Clone(opts), func(o guard.Option) bool {
				name := seal.MarkOf(o).Name
				return !slices.Contains(place.Takes, name) || place.Refuses[name] != ""
			})
			asking := 30 * time.Second // a busy machine is no outage
			if strings.Contains(t.Name(), "/Outage") {
				asking = 5 * time.Second
			}
			run := func(locks *core.Client, due time.Time, opts []guard.Option) (handler, error) {
				return runTick(locks, due, asking, opts)
			}
			if kind == guardconformance.Exclusive {
				run = runExclusive
			}
			handle, err := run(locks, tick, opts)
			if err != nil {
				t.Fatal(err)
			}
			return func(ctx context.Context, _, payload string) guardconformance.Result {
				ended := make(chan guardconformance.Result, 1)
				go func() {
					result := guardconformance.Result{Code: guardconformance.Broken}
					defer func() {
						_ = recover()
						ended <- result
					}()
					ran := false
					err := handle(ctx, func(ctx context.Context) (err error) {
						ran = true
						result.Value, err = fn(ctx, payload)
						return err
					})
					result.Code = code(ran, err)
				}()
				select {
				case result := <-ended:
					return result
				case <-ctx.Done():
					return guardconformance.Result{Code: guardconformance.Left}
				}
			}
		},
	})
}

// handler handles a tick with a function. The error is the function's, or why it did not run.
type handler = func(ctx context.Context, fn func(context.Context) error) error

type fnKey struct{}

// runTick comes for one tick of a job. Redis is asked for it for so long.
func runTick(locks *core.Client, due time.Time, asking time.Duration, opts []guard.Option) (handler, error) {
	c := cron.New()
	_, err := AddFunc(c, locks, "@every 1h", "job", func(ctx context.Context) error {
		return ctx.Value(fnKey{}).(func(context.Context) error)(ctx)
	}, opts...)
	if err != nil {
		return nil, err
	}
	// The suite learns the name from the first request for the record. In an outage a tick does not come that far, because it asks
	// for the pause first.
	ended, end := context.WithCancel(context.Background())
	end()
	_, _ = locks.Once(tickKey("job", due)).Begin(ended)
	j, _ := find(c, "job")
	return func(ctx context.Context, fn func(context.Context) error) error {
		patience, cancel := context.WithTimeout(ctx, asking)
		defer cancel()
		e := j.newExecution(context.WithValue(ctx, fnKey{}, fn), tick{due, 5 * time.Minute})
		e.patience = patience
		if _, err := j.guard.Do(e.base, e.ask(), e.handle(e.around)); err != nil {
			return err
		}
		return e.err
	}, nil
}

// runExclusive runs a job behind Exclusive.
func runExclusive(locks *core.Client, _ time.Time, opts []guard.Option) (handler, error) {
	config, err := newConfig(exclusivePlace, opts)
	if err != nil {
		return nil, err
	}
	exclusive, ask, err := config.exclusive(locks.Mutex, "job")
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, fn func(context.Context) error) error {
		var failed error
		j := newJob("job", func(ctx context.Context) error {
			failed = fn(ctx)
			return failed
		}, config, seal.FactsOf(locks))
		if err := j.bare(ctx, ask, exclusive.Do); err != nil {
			return err
		}
		return failed
	}, nil
}

func code(ran bool, err error) guardconformance.Code {
	for _, is := range []struct {
		err  error
		code guardconformance.Code
	}{
		{core.ErrWrongType, guardconformance.Erroneous},
		{core.ErrUndecided, guardconformance.Undecided},
		{core.ErrUnavailable, guardconformance.Unavailable},
		{core.ErrCompleted, guardconformance.Completed},
		{core.ErrOutcomeUnknown, guardconformance.Unknown},
		{core.ErrInProgress, guardconformance.Busy},
		{core.ErrNotAcquired, guardconformance.Busy},
	} {
		if !ran && errors.Is(err, is.err) {
			return is.code
		}
	}
	if err != nil {
		return guardconformance.Failed
	}
	return guardconformance.Ran
}
