package once_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestPartialResolve takes one command after another from the user: what could not be resolved can be, later.
func TestPartialResolve(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb := server.Client()
	for _, command := range []string{"time", "hmget", "hset", "hdel", "pexpire", "pexpire -del", "set", "get"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			rules := append([]string{"+@all"}, strings.Fields("-"+command)...)
			locks := coretest.NewClient(t, coretest.Restricted(t, server, rules...))
			for _, was := range []string{"held", "nothing"} {
				name := was + ", without " + command
				resolvables[was].prepare(t, rdb, coretest.NewClient(t, rdb, core.WithTTL(coretest.Long)), name)
				before := contents(t, rdb, name)
				if err := coretest.ResolveNow(ctx, locks.Once(name), []byte("value")); err == nil {
					t.Error("resolved without the right to")
				}
				wantExpiry(t, rdb, name)
				if command == "hset" && !maps.Equal(before, contents(t, rdb, name)) {
					t.Errorf("half of a Resolve is left: %v", contents(t, rdb, name))
				}
				testkit.Eventually(t, coretest.Within, "the rest to expire", func() bool { // see expire in internal/script/lua/once/common.lua
					return rdb.Type(ctx, coretest.RecordOf(name)).Val() != "string"
				})
				err := coretest.ResolveNow(ctx, locksOf(t, rdb, name), []byte("value"))
				if err != nil && !errors.Is(err, core.ErrCompleted) {
					t.Errorf("Resolve: %v", err)
				}
				wantStateOnly(t, locksOf(t, rdb, name), core.StateCompleted)
			}
		})
	}
}

// TestResolveIsFinished: a run of the script that died halfway has recorded it; the repetition does not take that for
// the answer of another operator.
func TestResolveIsFinished(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb, relay := server.Client(), server.Relay()
	coretest.LoadOnce(t, rdb)
	once := coretest.NewClient(t, relay.Client(), core.WithTTL(coretest.Long)).Once("name")
	if err := coretest.MustBegin(t, once).Hold(ctx, "reason"); err != nil {
		t.Fatal(err)
	}
	seen := coretest.MustPeek(t, once)
	relay.LoseReplies(coretest.RecordOf("name"), 1, testkit.Closed)
	coretest.BeforeRepetition(relay, coretest.RecordOf("name"), func() {
		for _, key := range rdb.Keys(ctx, "holdfast:released:*").Val() {
			rdb.Del(ctx, key)
		}
		rdb.HSet(ctx, coretest.RecordOf("name"), "reason", "reason", "deadline", 0)
	})
	if err := once.Resolve(ctx, seen, []byte("value")); err != nil || relay.LostReplies() != 1 {
		t.Errorf("Resolve: %v", err)
	}
	if r := coretest.WantState(t, once, core.StateCompleted, 1); string(r.Value) != "value" || r.Reason != "" {
		t.Errorf("%+v", r)
	}
}

// TestResolveTwice: the record is forgotten and another attempt begins between the two runs of a Resolve, and stays.
func TestResolveTwice(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	relay := server.Relay()
	coretest.LoadOnce(t, server.Client())
	other := coretest.NewClient(t, server.Client(), core.WithTTL(coretest.Long)).Once("name")
	once := coretest.NewClient(t, relay.Client()).Once("name")
	relay.LoseReplies(coretest.RecordOf("name"), 1, testkit.Closed)
	coretest.BeforeRepetition(relay, coretest.RecordOf("name"), func() {
		coretest.WantState(t, other, core.StateCompleted, 0)
		coretest.Forget(t, other)
		coretest.MustBegin(t, other)
	})
	if err := once.Resolve(context.Background(), core.Record{}, []byte("value")); err != nil || relay.LostReplies() != 1 {
		t.Errorf("Resolve: %v", err)
	}
	coretest.WantState(t, other, core.StateRunning, 1)
}

// TestResolveAtTheSameTime: one of many is the first word, and the others hear it.
func TestResolveAtTheSameTime(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	var first atomic.Int64
	done := make(chan error, 8)
	for i := range cap(done) {
		locks := coretest.NewClient(t, rdb)
		go func() {
			value := fmt.Sprint("value ", i)
			err := coretest.ResolveNow(ctx, locks.Once("name"), []byte(value))
			var other *core.CompletedError
			switch {
			case err == nil:
				first.Add(1)
			case errors.As(err, &other) && string(other.Record.Value) != value:
				err = nil
			}
			done <- err
		}()
	}
	for range cap(done) {
		if err := coretest.Receive(t, done); err != nil {
			t.Errorf("Resolve: %v", err)
		}
	}
	if n := first.Load(); n != 1 {
		t.Errorf("%d were the first", n)
	}
}
