package client_test

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestNilFunctionIsRefused before Redis is asked: it would panic with the lock held, and leave a failed run behind.
func TestNilFunctionIsRefused(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := coretest.NewClient(t, server.Client())
	lock := locks.Mutex("name")
	_, once := locks.Once("name").Do(t.Context(), nil)
	for what, err := range map[string]error{
		"Do":             core.Do(t.Context(), lock, nil),
		"Do of a Multi":  core.Do(t.Context(), core.Multi(lock, locks.Mutex("other")), nil),
		"TryDo":          core.TryDo(t.Context(), lock, nil),
		"Once.Do":        once,
		"Election.Run":   locks.Election("name").Run(t.Context(), nil),
		"Election.TryDo": locks.Election("name").TryDo(t.Context(), nil),
	} {
		t.Run(what, func(t *testing.T) { coretest.WantInvalid(t, err, core.ErrInvalidOption, "the function is nil") })
	}
	never := func(context.Context) error { t.Error("the function ran"); return nil }
	for what, err := range map[string]error{
		"Do": core.Do(t.Context(), nil, never), "TryDo": core.TryDo(t.Context(), nil, never),
	} {
		t.Run(what+" without a Locker", func(t *testing.T) { coretest.WantInvalid(t, err, core.ErrInvalidOption, "the Locker is nil") })
	}
	if n := server.CommandStats()["evalsha"].Calls; n != 0 {
		t.Errorf("%d scripts ran", n)
	}
}

// checked is a Locker of another package with a method Check.
type checked struct {
	core.Locker
	err error
}

func (c checked) Check() error { return c.err }

// TestCheckLocker: an adapter learns at once what Lock would refuse later.
func TestCheckLocker(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	two := core.WithPermits(2)
	wrong := errors.New("wrong")
	for name, test := range map[string]struct {
		locker core.Locker
		want   error
	}{
		"Mutex":                       {locks.Mutex("a"), nil},
		"Semaphore":                   {locks.Semaphore("a", 2, two), nil},
		"Multi":                       {core.Multi(locks.Semaphore("a", 2), locks.Fair("b")), nil},
		"a Locker of another package": {coretest.Foreign{Locker: locks.Semaphore("a", 0)}, nil},
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

// TestLimitOf: an adapter that gets a strategy learns how many can hold its locks at a time.
func TestLimitOf(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	two := core.WithPermits(2)
	for name, test := range map[string]struct {
		locker core.Locker
		want   int
	}{
		"Semaphore":                   {locks.Semaphore("a", 5), 5},
		"Limit":                       {locks.Limit(5)("a"), 5},
		"with permits":                {locks.Limit(5)("a", two), 2},
		"Mutex":                       {locks.Mutex("a"), 0},
		"Read":                        {locks.Read("a"), 0},
		"Multi of semaphores":         {core.Multi(locks.Semaphore("a", 100), locks.Semaphore("b", 5)), 5},
		"Multi with a Mutex":          {core.Multi(locks.Semaphore("a", 100), locks.Mutex("b")), 0},
		"Multi without members":       {core.Multi(), 0},
		"none":                        {nil, 0},
		"a Locker of another package": {coretest.Foreign{Locker: locks.Semaphore("a", 5)}, 0},
	} {
		if got := core.LimitOf(test.locker); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

// TestModeOf: an adapter learns whether holders of a lock run beside each other.
func TestModeOf(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	for name, test := range map[string]struct {
		locker core.Locker
		want   core.Mode
	}{
		"Mutex":                       {locks.Mutex("a"), core.ModeMutex},
		"Fair":                        {locks.Fair("a"), core.ModeFair},
		"Read":                        {locks.Read("a"), core.ModeRead},
		"FairRead":                    {locks.FairRead("a"), core.ModeRead},
		"Write":                       {locks.Write("a"), core.ModeWrite},
		"Semaphore":                   {locks.Semaphore("a", 5), core.ModeSemaphore},
		"Multi of readers":            {core.Multi(locks.Read("a"), locks.Read("b")), core.ModeRead},
		"Multi with a writer":         {core.Multi(locks.Read("a"), locks.Write("b")), core.ModeWrite},
		"Multi without members":       {core.Multi(), ""},
		"none":                        {nil, ""},
		"a Locker of another package": {coretest.Foreign{Locker: locks.Read("a")}, ""},
	} {
		if got := core.ModeOf(test.locker); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
