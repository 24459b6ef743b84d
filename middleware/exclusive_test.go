package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/middleware"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// broken is a lock that fails.
type broken struct{ err error }

func (b broken) Name() string { return "broken" }

func (b broken) Lock(context.Context, ...core.LockOption) (*core.Lease, error) { return nil, b.err }

func (b broken) TryLock(context.Context, ...core.LockOption) (*core.Lease, error) { return nil, b.err }

// reply is an error that Redis has answered.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

// TestFailOpenIsForOutagesOnly: only a Redis that could not be asked, or that serves no client at all, opens a guard.
func TestFailOpenIsForOutagesOnly(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err error
		ran bool
	}{
		{core.ErrUnavailable, true},
		{errors.Join(&core.NotAcquiredError{}, core.ErrUnavailable), true},
		{fmt.Errorf("%w: %w", core.ErrUnavailable, &net.OpError{Op: "dial", Err: errors.New("refused")}), true},
		{fmt.Errorf("%w: %w", core.ErrUnavailable, reply("LOADING Redis is loading the dataset in memory")), true},
		{fmt.Errorf("%w: %w", core.ErrUnavailable, reply("CLUSTERDOWN The cluster is down")), true},
		{fmt.Errorf("%w: %w", core.ErrUnavailable, reply("READONLY You can't write against a read only replica.")), true},
		{fmt.Errorf("%w: %w", core.ErrUnavailable, reply("ERR max number of clients reached")), true},
		{fmt.Errorf("%w: %w", core.ErrUnavailable, reply("MISCONF Redis is configured to save RDB snapshots")), false},
		{fmt.Errorf("%w: %w", core.ErrUnavailable, reply("NOREPLICAS Not enough good replicas to write.")), false},
		{fmt.Errorf("%w: %w", core.ErrUnavailable, reply("ERR something else")), false},
		{fmt.Errorf("%w: %w", core.ErrUnavailable, errors.Join(reply("LOADING"), reply("OOM command not allowed"))), false},
		{errors.Join(core.ErrUnavailable, core.ErrNotReplicated), false},
		{reply("OOM command not allowed when used memory > 'maxmemory'."), false},
		{reply("NOPERM User app has no permissions to run the 'evalsha' command"), false},
		{reply("WRONGPASS invalid username-password pair or user is disabled."), false},
		{core.ErrWrongType, false},
		{core.ErrClosed, false},
		{errors.New("a foreign strategy's own"), false},
		{&core.NotAcquiredError{}, false},
		{errors.Join(&core.NotAcquiredError{}, core.ErrTooManyWaiters), false},
		{core.ErrLeaseLost, false},
		{core.ErrInvalidOption, false},
		{core.ErrInvalidName, false},
		{core.ErrUpgrade, false},
	} {
		config := middleware.DefaultConfig()
		config.FailOpen = true
		config.Apply(nil, middleware.WithLogger(nil))
		strategy := func(string, ...core.LockOption) core.Locker { return broken{test.err} }
		e, err := middleware.NewExclusive(strategy, config)
		if err != nil {
			t.Fatal(err)
		}
		ran := false
		conflict := e.Do(t.Context(), middleware.Request{Key: mustKey(t, "a", "b")}, func(ctx context.Context) {
			ran = middleware.Degraded(ctx)
		})
		if ran != test.ran || (conflict == nil) != test.ran {
			t.Errorf("%v: ran %v, conflict %v", test.err, ran, conflict)
		}
		if conflict != nil && !errors.Is(conflict, test.err) {
			t.Errorf("%v: the conflict is %v", test.err, conflict)
		}
	}
}

func TestDoWithoutKeyRunsNothing(t *testing.T) {
	t.Parallel()
	strategy := func(string, ...core.LockOption) core.Locker { return struct{ core.Locker }{} } // it panics if it is used
	e, err := middleware.NewExclusive(strategy, middleware.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	conflict := e.Do(t.Context(), middleware.Request{}, func(context.Context) { t.Error("ran") })
	if conflict == nil || conflict.Code != middleware.CodeKeyRequired {
		t.Errorf("conflict %v", conflict)
	}
}

// late grants the lock just when the client has left.
type late struct {
	core.Locker
	leave func()
}

func (l late) Lock(ctx context.Context, opts ...core.LockOption) (*core.Lease, error) {
	lease, err := l.Locker.Lock(ctx, opts...)
	l.leave()
	return lease, err
}

func TestGrantedTooLateRunsNothing(t *testing.T) {
	t.Parallel()
	locks, err := core.New(testkit.Start(t).Client())
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	ctx, leave := context.WithCancel(t.Context())
	name := ""
	config := middleware.DefaultConfig()
	config.Wait = time.Minute // the machine may be busy
	e, err := middleware.NewExclusive(func(n string, opts ...core.LockOption) core.Locker {
		name = n
		return late{locks.Mutex(n, opts...), leave}
	}, config)
	if err != nil {
		t.Fatal(err)
	}
	conflict := e.Do(ctx, middleware.Request{Key: mustKey(t, "a", "b")}, func(context.Context) { t.Error("ran") })
	if conflict == nil || conflict.Code != middleware.CodeClientGone {
		t.Errorf("conflict %v, want client-gone", conflict)
	}
	if info, err := locks.Inspect(t.Context(), name); err != nil || len(info.Holders) > 0 {
		t.Errorf("after that the lock is %+v, %v", info, err)
	}
}
