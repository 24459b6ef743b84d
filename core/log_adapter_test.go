package core_test

import (
	"io"
	"log/slog"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// logging is one that has a logger.
type logging struct {
	core.Locker
	logger *slog.Logger
}

func (t logging) Logger() *slog.Logger { return t.logger }

// TestLoggerOf: an adapter that gets a strategy logs where the strategy's client does.
func TestLoggerOf(t *testing.T) {
	t.Parallel()
	logger, other := slog.New(slog.NewTextHandler(io.Discard, nil)), slog.New(slog.NewTextHandler(io.Discard, nil))
	rdb := testkit.Start(t).Client()
	locks := newClient(t, rdb, core.WithLogger(logger))
	if locks.Logger() != logger {
		t.Error("a client has another logger than WithLogger says")
	}
	for name, strategy := range map[string]core.Strategy{
		"Mutex": locks.Mutex, "Fair": locks.Fair, "Read": locks.Read, "Write": locks.Write,
		"FairRead": locks.FairRead, "FairWrite": locks.FairWrite,
	} {
		if core.LoggerOf(strategy("x")) != logger {
			t.Errorf("%s has another logger than its client", name)
		}
		if core.LoggerOf(strategy("{")) != logger {
			t.Errorf("%s with an invalid name has another logger than its client", name)
		}
	}
	mine := locks.Mutex("x")
	for name, test := range map[string]struct {
		locker core.Locker
		want   *slog.Logger
	}{
		"nil":                          {nil, slog.Default()},
		"foreign":                      {foreign{mine}, slog.Default()},
		"foreign that tells":           {logging{mine, other}, other},
		"foreign that tells nil":       {logging{mine, nil}, slog.Default()},
		"Multi":                        {core.Multi(foreign{mine}, core.Multi(mine, locks.Fair("y"))), logger},
		"Multi of a foreign one":       {core.Multi(foreign{mine}), slog.Default()},
		"Multi of one that tells":      {core.Multi(logging{mine, other}, locks.Fair("y")), other},
		"Multi of nothing":             {core.Multi(), slog.Default()},
		"Multi of nil, beside a Mutex": {core.Multi(nil, mine), logger},
	} {
		if got := core.LoggerOf(test.locker); got != test.want {
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
	if redlock.Logger() != logger || core.LoggerOf(redlock.Mutex("x")) != logger {
		t.Error("a Redlock has another logger than WithLogger says")
	}
}

// TestLoggerOfElection: an adapter that gets an election logs where its client does.
func TestLoggerOfElection(t *testing.T) {
	t.Parallel()
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	locks := newClient(t, testkit.Start(t).Client(), core.WithLogger(logger))
	if locks.Election("name").Logger() != logger || locks.Election("").Logger() != logger {
		t.Error("an election has another logger than its client")
	}
}
