package core_test

import (
	"context"
	"maps"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestFullServerOnce: a server without memory begins nothing, and learns how everything ends that had begun.
func TestFullServerOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := newClient(t, rdb, core.WithTTL(long))
	attempts := map[string]*core.Attempt{}
	for _, name := range []string{"complete", "hold", "release", "declare", "evicted", "zombie", "resolve"} {
		attempts[name] = mustBegin(t, locks.Once(name))
	}
	abandon(t, rdb, "zombie")
	next := mustBegin(t, locks.Once("zombie"))
	rdb.Del(ctx, recordOf("evicted"))
	mustBegin(t, locks.Once("clock"))
	rdb.HSet(ctx, recordOf("clock"), "deadline", time.Now().Add(time.Hour).UnixMilli())
	abandon(t, rdb, "resolve")
	fillUp(rdb)
	_, err := locks.Once("name").Begin(ctx)
	if err == nil || !strings.Contains(err.Error(), "OOM") || rdb.Exists(ctx, recordOf("name")).Val() != 0 {
		t.Errorf("Begin on a full server: %v", err)
	}
	_, err = locks.Once("clock").Begin(ctx)
	wantErr(t, err, core.ErrInProgress)
	for what, err := range map[string]error{
		"complete": attempts["complete"].Complete(ctx, []byte("value")),
		"hold":     attempts["hold"].Hold(ctx, "reason"),
		"release":  attempts["release"].Release(ctx),
		"declare":  attempts["declare"].Declare(ctx, core.StateUnknown),
		"evicted":  attempts["evicted"].Complete(ctx, nil),
		"forget":   forgetNow(ctx, locks.Once("declare")),
		"resolve":  resolveNow(ctx, locks.Once("resolve"), []byte("value")),
		"by hand":  resolveNow(ctx, locks.Once("by hand"), []byte("value")),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	wantState(t, locks.Once("complete"), core.StateCompleted, 1)
	wantState(t, locks.Once("hold"), core.StateUnknown, 1)
	wantState(t, locks.Once("release"), core.StateNone, 1)
	wantState(t, locks.Once("evicted"), core.StateCompleted, 1)
	wantState(t, locks.Once("resolve"), core.StateCompleted, 1)
	wantState(t, locks.Once("by hand"), core.StateCompleted, 0)
	wantErr(t, attempts["zombie"].Complete(ctx, nil), core.ErrStale)
	if n := len(rdb.Keys(ctx, "holdfast:released:{lock:zombie}*").Val()); n != 0 {
		t.Errorf("%d ends are remembered, though that of the zombie may be recorded yet", n)
	}
	if err := next.Complete(ctx, nil); err != nil {
		t.Error(err)
	}
	wantExpiries(t, rdb)
}

// TestHalfAScriptOfOnce takes one command after another from the user: no record may be left without an expiry, nor one
// that no caller can get past. Each begin has a server of its own, see TestHalfAScript.
func TestHalfAScriptOfOnce(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	rdb := server.Client()
	ctx := context.Background()
	begin := func(t *testing.T, name, command string, opts ...core.OnceOption) {
		t.Parallel()
		server := testkit.Start(t)
		rdb := server.Client()
		rules := append([]string{"+@all"}, strings.Fields("-"+command)...)
		locks := newClient(t, restricted(t, server, rules...), core.WithTTL(long))
		_, err := locks.Once(name, append(opts, core.WithFailurePolicy(core.HoldFailures))...).Begin(ctx)
		if err == nil || !regexp.MustCompile("run this command|no permissions").MatchString(err.Error()) {
			t.Errorf("error %v does not tell of the missing permission", err)
		}
		testkit.Eventually(t, within, "the record to be gone", func() bool {
			return rdb.HGet(ctx, recordOf(name), "state").Err() == redis.Nil
		})
		wantExpiry(t, rdb, name)
		mustBegin(t, locksOf(t, rdb, name))
	}
	for _, command := range []string{"time", "exists", "set", "hset", "pexpire", "pexpire -del"} {
		t.Run(command, func(t *testing.T) { begin(t, "without "+command, command) })
	}
	// What is claimed within a window goes through all of the script.
	window := core.WithWindow(time.Now().Add(-time.Hour), time.Time{})
	for _, command := range []string{"time", "exists", "hmget", "set", "hset", "pexpire", "pexpire -del"} {
		t.Run("window "+command, func(t *testing.T) { begin(t, "window without "+command, command, window) })
	}
	for _, command := range []string{"hset", "hdel", "pexpire", "set", "get"} {
		t.Run("end without "+command, func(t *testing.T) {
			t.Parallel()
			for _, was := range []string{"running", "evicted"} {
				name := was + ", end without " + command
				once := newClient(t, restricted(t, server, "+@all"), core.WithTTL(long)).Once(name)
				a := mustBegin(t, once)
				if was == "evicted" {
					rdb.Del(ctx, recordOf(name))
				}
				before := contents(t, rdb, name)
				rdb.Do(ctx, "ACL", "SETUSER", t.Name(), "-"+command)
				needed := was == "evicted" || command != "get" && command != "set" // which remember ends in doubt
				if err := a.Complete(ctx, []byte("value")); (err == nil) == needed {
					t.Errorf("%s: %v", was, err)
				}
				wantExpiry(t, rdb, name)
				if command == "hset" && !maps.Equal(before, contents(t, rdb, name)) {
					t.Errorf("half of a Complete is left: %v", contents(t, rdb, name))
				}
				rdb.Do(ctx, "ACL", "SETUSER", t.Name(), "+"+command)
				testkit.Eventually(t, within, "the record", func() bool {
					return mustPeek(t, locksOf(t, rdb, name)).State == core.StateCompleted
				})
			}
		})
	}
}

// TestOnceOfAnotherType: a key that is no record is left alone.
func TestOnceOfAnotherType(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	once := newClient(t, rdb, core.WithTTL(long)).Once("name")
	a, b, c := mustBegin(t, once), (*core.Attempt)(nil), (*core.Attempt)(nil)
	abandon(t, rdb, "name")
	b = mustBegin(t, once)
	abandon(t, rdb, "name")
	c = mustBegin(t, once)
	rdb.Set(ctx, recordOf("name"), "foreign", 0)
	_, err := once.Begin(ctx)
	wantErr(t, err, core.ErrWrongType)
	_, err = once.Peek(ctx)
	wantErr(t, err, core.ErrWrongType)
	wantErr(t, forgetNow(ctx, once), core.ErrWrongType)
	wantErr(t, resolveNow(ctx, once, nil), core.ErrWrongType)
	wantErr(t, a.Declare(ctx, core.StateUnknown), core.ErrWrongType)
	wantErr(t, a.Complete(ctx, nil), core.ErrWrongType)
	wantErr(t, b.Release(ctx), core.ErrWrongType)
	wantErr(t, c.Hold(ctx, ""), core.ErrWrongType)
	if got := rdb.Get(ctx, recordOf("name")).Val(); got != "foreign" {
		t.Errorf("overwritten with %q", got)
	}
}
