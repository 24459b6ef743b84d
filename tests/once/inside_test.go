package once_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestInsideARun: what the run says of itself overrules its end and the failure policy.
func TestInsideARun(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	hold := func(ctx context.Context) error { return core.Hold(ctx, "no answer of the bank") }
	failure := errors.New("failure")
	for name, test := range map[string]struct {
		say    []func(context.Context) error
		policy core.FailurePolicy
		err    error // of fn
		want   core.State
		reason string
		errs   error // of Do
	}{
		"completed, fails":         {[]func(context.Context) error{core.Complete}, core.RetryFailures, failure, core.StateCompleted, "", failure},
		"completed, held failures": {[]func(context.Context) error{core.Complete}, core.HoldFailures, failure, core.StateCompleted, "", failure},
		"completed":                {[]func(context.Context) error{core.Complete}, core.RetryFailures, nil, core.StateCompleted, "", nil},
		"released":                 {[]func(context.Context) error{core.Release}, core.RetryFailures, nil, core.StateNone, "", nil},
		"released, held failures":  {[]func(context.Context) error{core.Release}, core.HoldFailures, failure, core.StateNone, "", failure},
		"held":                     {[]func(context.Context) error{hold}, core.RetryFailures, nil, core.StateUnknown, "no answer of the bank", core.ErrOutcomeUnknown},
		"held, fails":              {[]func(context.Context) error{hold}, core.RetryFailures, failure, core.StateUnknown, "no answer of the bank", failure},
		"the last counts":          {[]func(context.Context) error{hold, core.Release}, core.RetryFailures, nil, core.StateNone, "", nil},
		"held after completed":     {[]func(context.Context) error{core.Release, core.Complete, hold}, core.RetryFailures, nil, core.StateUnknown, "no answer of the bank", core.ErrOutcomeUnknown},
	} {
		once := locks.Once(name, core.WithFailurePolicy(test.policy))
		_, err := once.Do(t.Context(), func(ctx context.Context) ([]byte, error) {
			inner, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			for _, say := range test.say {
				if err := say(inner); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			return []byte("value"), test.err
		})
		if !errors.Is(err, test.errs) || test.errs == nil && err != nil {
			t.Errorf("%s: Do returns %v", name, err)
		}
		r := coretest.MustPeek(t, once)
		if r.State != test.want || r.Reason != test.reason {
			t.Errorf("%s: the record is %q for %q", name, r.State, r.Reason)
		}
		if r.State == core.StateCompleted && string(r.Value) != "value" {
			t.Errorf("%s: the value is %q", name, r.Value)
		}
	}
	_, err := core.OnceValue(t.Context(), locks.Once("no value"), func(ctx context.Context) (rate, error) {
		return rate{}, errors.Join(core.Complete(ctx), failure)
	})
	coretest.WantErr(t, err, failure)
	_, err = core.OnceValue(t.Context(), locks.Once("no value"), never)
	if coretest.WantErr(t, err, core.ErrCompleted); err != nil && !strings.Contains(err.Error(), "not recorded") {
		t.Error(err)
	}
}

// TestReleaseAfterComplete: it is refused, and neither the end of the run nor a crash frees the key.
func TestReleaseAfterComplete(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	failure := errors.New("failure")
	for name, test := range map[string]struct {
		then func(context.Context) error
		want core.State
	}{
		"completed": {core.Complete, core.StateCompleted},
		"held":      {func(ctx context.Context) error { return core.Hold(ctx, "") }, core.StateUnknown},
	} {
		once := locks.Once(name)
		_, err := once.Do(t.Context(), func(ctx context.Context) ([]byte, error) {
			for _, say := range []func(context.Context) error{core.Complete, test.then} {
				if err := say(ctx); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			coretest.WantErr(t, core.Release(ctx), core.ErrCompleted)
			return nil, failure
		})
		coretest.WantErr(t, err, failure)
		coretest.WantState(t, once, test.want, 1)
	}
	crashed := coretest.MustBegin(t, locks.Once("crashed", core.WithTTL(time.Second)))
	if err := core.Complete(crashed.Context()); err != nil {
		t.Error(err)
	}
	coretest.WantErr(t, core.Release(crashed.Context()), core.ErrCompleted)
	crashed.Abandon()
	_, err := locks.Once("crashed", core.WithWait(time.Minute)).Begin(t.Context())
	coretest.WantErr(t, err, core.ErrCompleted)
}

// TestCompleteBeforeAPanic: the effect is recorded although the run does not return.
func TestCompleteBeforeAPanic(t *testing.T) {
	t.Parallel()
	once := coretest.NewClient(t, testkit.Start(t).Client()).Once("name")
	func() {
		defer func() { _ = recover() }()
		_, _ = once.Do(t.Context(), func(ctx context.Context) ([]byte, error) {
			if err := core.Complete(ctx); err != nil {
				t.Error(err)
			}
			panic("after that")
		})
	}()
	coretest.WantState(t, once, core.StateCompleted, 1)
}

// TestFactsInsideARun: the innermost run counts, through the contexts of locks, and only its attempts share a hash.
func TestFactsInsideARun(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	if a, ok := core.AttemptFrom(ctx); a != nil || ok || core.KeyHash(ctx) != "" {
		t.Error("an attempt outside of a run")
	}
	for _, say := range []func(context.Context) error{core.Complete, core.Release, func(ctx context.Context) error { return core.Hold(ctx, "") }} {
		coretest.WantErr(t, say(ctx), core.ErrNotGuarded)
	}
	outer := coretest.MustBegin(t, locks.Once("outer"))
	hash := core.KeyHash(outer.Context())
	if a, _ := core.AttemptFrom(outer.Context()); a != outer || hash == "" || strings.Contains(hash, "outer") {
		t.Errorf("the attempt has the hash %q", hash)
	}
	_, err := locks.Once("inner").Do(outer.Context(), func(ctx context.Context) ([]byte, error) {
		return nil, locks.Mutex("lock").Do(ctx, func(ctx context.Context) error {
			a, ok := core.AttemptFrom(ctx)
			if !ok || a == outer || core.KeyHash(ctx) == hash {
				t.Error("not the innermost run")
			}
			return core.Release(ctx)
		})
	})
	if err != nil {
		t.Error(err)
	}
	coretest.WantState(t, locks.Once("outer"), core.StateRunning, 1)
	if err := outer.Release(ctx); err != nil {
		t.Error(err)
	}
	coretest.WantErr(t, core.Complete(outer.Context()), core.ErrNotHeld)
	again := coretest.MustBegin(t, locks.Once("outer"))
	if core.KeyHash(again.Context()) != hash {
		t.Error("another attempt has another hash")
	}
}

// TestKeyHashHasThePrefix: clients with other prefixes have other records, so what they send to another service is not the same either.
func TestKeyHashHasThePrefix(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	hashes := make(map[string]bool)
	for _, prefix := range []string{"", "lock:", "prod:", "staging:", "prod:"} {
		a := coretest.MustBegin(t, coretest.NewClient(t, rdb, core.WithPrefix(prefix)).Once("charge:42"))
		hashes[core.KeyHash(a.Context())] = true
		if err := a.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if len(hashes) != 4 || hashes[""] {
		t.Errorf("hashes %v of four prefixes", hashes)
	}
}
