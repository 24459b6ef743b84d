package client_test

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestNilIsRefused before Redis is asked. A nil function would panic with the lock held, and leave a failed run behind.
func TestNilIsRefused(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := coretest.NewClient(t, server.Client())
	lock := locks.Mutex("name")
	_, once := locks.Once("name").Do(t.Context(), nil)
	for what, err := range map[string]error{
		"Do":             lock.Do(t.Context(), nil),
		"Do of a Multi":  core.Multi(lock, locks.Mutex("other")).Do(t.Context(), nil),
		"TryDo":          lock.TryDo(t.Context(), nil),
		"Once.Do":        once,
		"Election.Run":   locks.Election("name").Run(t.Context(), nil),
		"Election.TryDo": locks.Election("name").TryDo(t.Context(), nil),
	} {
		t.Run(what, func(t *testing.T) { coretest.WantInvalid(t, err, core.ErrInvalidOption, "the function is nil") })
	}
	never := func(context.Context) error { t.Error("the function ran"); return nil }
	for what, lock := range map[string]*core.Lock{"nil": nil, "zero": new(core.Lock)} {
		_, locked := lock.Lock(t.Context())
		_, tried := lock.TryLock(t.Context())
		for call, err := range map[string]error{
			"Lock": locked, "TryLock": tried, "Check": lock.Check(), "Do": lock.Do(t.Context(), never), "TryDo": lock.TryDo(t.Context(), never),
		} {
			t.Run(call+" of a "+what+" Lock", func(t *testing.T) { coretest.WantInvalid(t, err, core.ErrInvalidOption, "the Lock is nil") })
		}
		if name := lock.Name(); name != "" {
			t.Errorf("a %s Lock has the name %q", what, name)
		}
	}
	for what, once := range map[string]*core.Once{"nil": nil, "zero": new(core.Once)} {
		_, did := once.Do(t.Context(), func(context.Context) ([]byte, error) { t.Error("the function ran"); return nil, nil })
		_, began := once.Begin(t.Context())
		_, peeked := once.Peek(t.Context())
		_, valued := core.OnceValue(t.Context(), once, func(context.Context) (int, error) { t.Error("the function ran"); return 0, nil })
		for call, err := range map[string]error{
			"Do": did, "Begin": began, "Peek": peeked, "OnceValue": valued, "Forget": once.Forget(t.Context(), core.Record{}),
			"ForgetRunning": once.ForgetRunning(t.Context(), core.Record{}), "Resolve": once.Resolve(t.Context(), core.Record{}, nil),
		} {
			t.Run(call+" of a "+what+" Once", func(t *testing.T) { coretest.WantInvalid(t, err, core.ErrInvalidOption, "the Once is nil") })
		}
		if key := once.Key(); key != "" {
			t.Errorf("a %s Once has the key %q", what, key)
		}
	}
	for what, election := range map[string]*core.Election{"nil": nil, "zero": new(core.Election)} {
		_, campaigned := election.Campaign(t.Context())
		_, led := election.Leader(t.Context())
		for call, err := range map[string]error{
			"Run": election.Run(t.Context(), never), "Campaign": campaigned, "Leader": led,
			"IsLeader": election.IsLeader(t.Context()), "TryDo": election.TryDo(t.Context(), never),
		} {
			t.Run(call+" of a "+what+" Election", func(t *testing.T) {
				coretest.WantInvalid(t, err, core.ErrInvalidOption, "the Election is nil")
			})
		}
		for range election.Observe(t.Context()) {
			t.Errorf("a %s Election has a leader", what)
		}
	}
	if n := server.CommandStats()["evalsha"].Calls; n != 0 {
		t.Errorf("%d scripts ran", n)
	}
}

// TestCheck: an adapter learns at once what Lock would refuse later.
func TestCheck(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	two := core.WithPermits(2)
	for name, test := range map[string]struct {
		lock *core.Lock
		want error
	}{
		"Mutex":                 {locks.Mutex("a"), nil},
		"Semaphore":             {locks.Semaphore("a", 2, two), nil},
		"Multi":                 {core.Multi(locks.Semaphore("a", 2), locks.Fair("b")), nil},
		"nil":                   {nil, core.ErrInvalidOption},
		"no name":               {locks.Mutex(""), core.ErrInvalidName},
		"a TTL":                 {locks.Mutex("a", core.WithTTL(1)), core.ErrInvalidOption},
		"Limit(0)":              {locks.Limit(0)("a"), core.ErrInvalidOption},
		"Limit(-1)":             {locks.Limit(-1)("a"), core.ErrInvalidOption},
		"Limit(1000001)":        {locks.Limit(1_000_001)("a"), core.ErrInvalidOption},
		"more permits than n":   {locks.Limit(1)("a", two), core.ErrInvalidOption},
		"permits of a Mutex":    {locks.Mutex("a", two), core.ErrInvalidOption},
		"Multi without members": {core.Multi(), core.ErrInvalidOption},
		"Multi of a wrong one":  {core.Multi(locks.Mutex("a"), locks.Semaphore("b", 0)), core.ErrInvalidOption},
	} {
		got := test.lock.Check()
		if !errors.Is(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
		if _, err := test.lock.TryLock(t.Context()); test.want != nil && !errors.Is(err, test.want) {
			t.Errorf("%s: TryLock says %v, want %v", name, err, test.want)
		}
	}
}
