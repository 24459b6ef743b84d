package core_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestLimitOf: an adapter that gets a strategy learns how many can hold its locks at a time.
func TestLimitOf(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
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
		"a Locker of another package": {foreign{locks.Semaphore("a", 5)}, 0},
	} {
		if got := core.LimitOf(test.locker); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

// TestModeOf: an adapter learns whether holders of a lock run beside each other.
func TestModeOf(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
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
		"a Locker of another package": {foreign{locks.Read("a")}, ""},
	} {
		if got := core.ModeOf(test.locker); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
