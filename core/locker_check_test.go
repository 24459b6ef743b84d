package core_test

import (
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// checked is a Locker of another package with a method Check.
type checked struct {
	core.Locker
	err error
}

func (c checked) Check() error { return c.err }

// TestCheckLocker: an adapter learns at once what Lock would refuse later.
func TestCheckLocker(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	two := core.WithPermits(2)
	wrong := errors.New("wrong")
	for name, test := range map[string]struct {
		locker core.Locker
		want   error
	}{
		"Mutex":                       {locks.Mutex("a"), nil},
		"Semaphore":                   {locks.Semaphore("a", 2, two), nil},
		"Multi":                       {core.Multi(locks.Semaphore("a", 2), locks.Fair("b")), nil},
		"a Locker of another package": {foreign{locks.Semaphore("a", 0)}, nil},
		"one with Check":              {checked{locks.Mutex("a"), wrong}, wrong},
		"nil":                         {nil, core.ErrInvalidOption},
		"no name":                     {locks.Mutex(""), core.ErrInvalidName},
		"a TTL":                       {locks.Mutex("a", core.WithTTL(1)), core.ErrInvalidOption},
		"Limit(0)":                    {locks.Limit(0)("a"), core.ErrInvalidOption},
		"Limit(-1)":                   {locks.Limit(-1)("a"), core.ErrInvalidOption},
		"Limit(1000001)":              {locks.Limit(1_000_001)("a"), core.ErrInvalidOption},
		"more permits than n":         {locks.Limit(1)("a", two), core.ErrInvalidOption},
		"permits of a Mutex":          {locks.Mutex("a", two), core.ErrInvalidOption},
		"Multi without members":       {core.Multi(), core.ErrInvalidOption},
		"Multi of a wrong one":        {core.Multi(locks.Mutex("a"), locks.Semaphore("b", 0)), core.ErrInvalidOption},
	} {
		got := core.CheckLocker(test.locker)
		if !errors.Is(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
		if test.locker == nil {
			continue
		}
		if _, ok := test.locker.(checked); ok {
			continue
		}
		if _, err := test.locker.TryLock(t.Context()); test.want != nil && !errors.Is(err, test.want) {
			t.Errorf("%s: TryLock says %v, want %v", name, err, test.want)
		}
	}
}
