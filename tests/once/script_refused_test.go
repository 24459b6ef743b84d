package once_test

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
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestFullServerOnce: a server without memory begins nothing, and learns how everything ends that had begun.
func TestFullServerOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	attempts := map[string]*core.Attempt{}
	for _, name := range []string{"complete", "hold", "release", "declare", "evicted", "zombie", "resolve"} {
		attempts[name] = coretest.MustBegin(t, locks.Once(name))
	}
	coretest.Abandon(t, rdb, "zombie")
	next := coretest.MustBegin(t, locks.Once("zombie"))
	rdb.Del(ctx, coretest.RecordOf("evicted"))
	coretest.MustBegin(t, locks.Once("clock"))
	rdb.HSet(ctx, coretest.RecordOf("clock"), "deadline", time.Now().Add(time.Hour).UnixMilli())
	coretest.Abandon(t, rdb, "resolve")
	coretest.FillUp(rdb)
	_, err := locks.Once("name").Begin(ctx)
	if err == nil || !strings.Contains(err.Error(), "OOM") || rdb.Exists(ctx, coretest.RecordOf("name")).Val() != 0 {
		t.Errorf("Begin on a full server: %v", err)
	}
	_, err = locks.Once("clock").Begin(ctx)
	coretest.WantErr(t, err, core.ErrInProgress)
	for what, err := range map[string]error{
		"complete": attempts["complete"].Complete(ctx, []byte("value")),
		"hold":     attempts["hold"].Hold(ctx, "reason"),
		"release":  attempts["release"].Release(ctx),
		"declare":  attempts["declare"].Declare(ctx, core.StateUnknown),
		"evicted":  attempts["evicted"].Complete(ctx, nil),
		"forget":   coretest.ForgetNow(ctx, locks.Once("declare")),
		"resolve":  coretest.ResolveNow(ctx, locks.Once("resolve"), []byte("value")),
		"by hand":  coretest.ResolveNow(ctx, locks.Once("by hand"), []byte("value")),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	coretest.WantState(t, locks.Once("complete"), core.StateCompleted, 1)
	coretest.WantState(t, locks.Once("hold"), core.StateUnknown, 1)
	coretest.WantState(t, locks.Once("release"), core.StateNone, 1)
	coretest.WantState(t, locks.Once("evicted"), core.StateCompleted, 1)
	coretest.WantState(t, locks.Once("resolve"), core.StateCompleted, 1)
	coretest.WantState(t, locks.Once("by hand"), core.StateCompleted, 0)
	coretest.WantErr(t, attempts["zombie"].Complete(ctx, nil), core.ErrStale)
	if n := len(rdb.Keys(ctx, "holdfast:released:{lock:zombie}*").Val()); n != 0 {
		t.Errorf("%d ends are remembered, though that of the zombie may be recorded yet", n)
	}
	if err := next.Complete(ctx, nil); err != nil {
		t.Error(err)
	}
	wantExpiries(t, rdb)
}

// TestPartialScriptOfOnce takes one command after another from the user: no record may be left without an expiry, nor one
// that no caller can get past. Each begin has a server of its own, see TestPartialScript.
func TestPartialScriptOfOnce(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	rdb := server.Client()
	ctx := context.Background()
	begin := func(t *testing.T, name, command string, opts ...core.OnceOption) {
		t.Parallel()
		server := testkit.Start(t)
		rdb := server.Client()
		rules := append([]string{"+@all"}, strings.Fields("-"+command)...)
		locks := coretest.NewClient(t, coretest.Restricted(t, server, rules...), core.WithTTL(coretest.Long))
		_, err := locks.Once(name, append(opts, core.WithFailurePolicy(core.HoldFailures))...).Begin(ctx)
		if err == nil || !regexp.MustCompile("run this command|no permissions").MatchString(err.Error()) {
			t.Errorf("error %v does not tell of the missing permission", err)
		}
		testkit.Eventually(t, coretest.Within, "the record to be gone", func() bool {
			return rdb.HGet(ctx, coretest.RecordOf(name), "state").Err() == redis.Nil
		})
		wantExpiry(t, rdb, name)
		coretest.MustBegin(t, locksOf(t, rdb, name))
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
				once := coretest.NewClient(t, coretest.Restricted(t, server, "+@all"), core.WithTTL(coretest.Long)).Once(name)
				a := coretest.MustBegin(t, once)
				if was == "evicted" {
					rdb.Del(ctx, coretest.RecordOf(name))
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
				testkit.Eventually(t, coretest.Within, "the record", func() bool {
					return coretest.MustPeek(t, locksOf(t, rdb, name)).State == core.StateCompleted
				})
			}
		})
	}
}

// TestOnceWrongType: a key that is no record is left alone.
func TestOnceWrongType(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	once := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long)).Once("name")
	a, b, c := coretest.MustBegin(t, once), (*core.Attempt)(nil), (*core.Attempt)(nil)
	coretest.Abandon(t, rdb, "name")
	b = coretest.MustBegin(t, once)
	coretest.Abandon(t, rdb, "name")
	c = coretest.MustBegin(t, once)
	rdb.Set(ctx, coretest.RecordOf("name"), "foreign", 0)
	_, err := once.Begin(ctx)
	coretest.WantErr(t, err, core.ErrWrongType)
	_, err = once.Peek(ctx)
	coretest.WantErr(t, err, core.ErrWrongType)
	coretest.WantErr(t, coretest.ForgetNow(ctx, once), core.ErrWrongType)
	coretest.WantErr(t, coretest.ResolveNow(ctx, once, nil), core.ErrWrongType)
	coretest.WantErr(t, a.Declare(ctx, core.StateUnknown), core.ErrWrongType)
	coretest.WantErr(t, a.Complete(ctx, nil), core.ErrWrongType)
	coretest.WantErr(t, b.Release(ctx), core.ErrWrongType)
	coretest.WantErr(t, c.Hold(ctx, ""), core.ErrWrongType)
	if got := rdb.Get(ctx, coretest.RecordOf("name")).Val(); got != "foreign" {
		t.Errorf("overwritten with %q", got)
	}
}
