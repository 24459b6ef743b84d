package client_test

import (
	"io"
	"log/slog"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestLimit: an adapter that gets a strategy learns how many can hold its locks at a time.
func TestLimit(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	two := core.WithPermits(2)
	for name, test := range map[string]struct {
		lock *core.Lock
		want int
	}{
		"Semaphore":             {locks.Semaphore("a", 5), 5},
		"Limit":                 {locks.Limit(5)("a"), 5},
		"with permits":          {locks.Limit(5)("a", two), 2},
		"Mutex":                 {locks.Mutex("a"), 0},
		"Read":                  {locks.Read("a"), 0},
		"Multi of semaphores":   {core.Multi(locks.Semaphore("a", 100), locks.Semaphore("b", 5)), 5},
		"Multi with a Mutex":    {core.Multi(locks.Semaphore("a", 100), locks.Mutex("b")), 0},
		"Multi without members": {core.Multi(), 0},
		"none":                  {nil, 0},
	} {
		if got := seal.FactsOf(test.lock).Lock.Limit; got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

// TestMode: an adapter learns whether holders of a lock run beside each other.
func TestMode(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	for name, test := range map[string]struct {
		lock *core.Lock
		want core.Mode
	}{
		"Mutex":                 {locks.Mutex("a"), core.ModeMutex},
		"Fair":                  {locks.Fair("a"), core.ModeFair},
		"Read":                  {locks.Read("a"), core.ModeRead},
		"FairRead":              {locks.FairRead("a"), core.ModeRead},
		"Write":                 {locks.Write("a"), core.ModeWrite},
		"Semaphore":             {locks.Semaphore("a", 5), core.ModeSemaphore},
		"Multi of readers":      {core.Multi(locks.Read("a"), locks.Read("b")), core.ModeRead},
		"Multi with a writer":   {core.Multi(locks.Read("a"), locks.Write("b")), core.ModeWrite},
		"Multi without members": {core.Multi(), ""},
		"none":                  {nil, ""},
	} {
		if got := seal.FactsOf(test.lock).Lock.Mode; got != string(test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestLogger: an adapter that gets a strategy logs where the strategy's client does.
func TestLogger(t *testing.T) {
	t.Parallel()
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithLogger(logger))
	if seal.FactsOf(locks).Logger != logger {
		t.Error("a client has another logger than WithLogger says")
	}
	for name, strategy := range map[string]core.Strategy{
		"Mutex": locks.Mutex, "Fair": locks.Fair, "Read": locks.Read, "Write": locks.Write,
		"FairRead": locks.FairRead, "FairWrite": locks.FairWrite,
	} {
		if seal.FactsOf(strategy("x")).Logger != logger {
			t.Errorf("%s has another logger than its client", name)
		}
		if seal.FactsOf(strategy("{")).Logger != logger {
			t.Errorf("%s with an invalid name has another logger than its client", name)
		}
	}
	mine := locks.Mutex("x")
	for name, test := range map[string]struct {
		lock *core.Lock
		want *slog.Logger
	}{
		"nil":                          {nil, slog.Default()},
		"zero":                         {new(core.Lock), slog.Default()},
		"Multi":                        {core.Multi(mine, core.Multi(mine, locks.Fair("y"))), logger},
		"Multi of nothing":             {core.Multi(), slog.Default()},
		"Multi of nil, beside a Mutex": {core.Multi(nil, mine), logger},
	} {
		if got := seal.FactsOf(test.lock).Logger; got != test.want {
			t.Errorf("%s: another logger than expected", name)
		}
	}
}

// TestLoggerOfRedlock: the same for locks on several servers.
func TestLoggerOfRedlock(t *testing.T) {
	t.Parallel()
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	var nodes []redis.UniversalClient
	for range 3 {
		nodes = append(nodes, testkit.Start(t).Client())
	}
	redlock, err := core.NewRedlock(nodes, core.WithLogger(logger))
	if err != nil {
		t.Fatal(err)
	}
	defer redlock.Close()
	if seal.FactsOf(redlock.Mutex("x")).Logger != logger {
		t.Error("a Redlock has another logger than WithLogger says")
	}
}

// TestLoggerOfElection: an adapter that gets an election logs where its client does.
func TestLoggerOfElection(t *testing.T) {
	t.Parallel()
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithLogger(logger))
	if seal.FactsOf(locks.Election("name")).Logger != logger || seal.FactsOf(locks.Election("")).Logger != logger {
		t.Error("an election has another logger than its client")
	}
}
