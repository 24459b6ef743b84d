package client_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// oddNames are names that look like something else: to Redis' protocol, to Lua, to its patterns, to a
// terminal, or to holdfast's own keys.
var oddNames = []string{
	"a", "b", "a:x", "=a", ":{a}", "{a}", "{a}:x", "{a}{b}", "{{a}}", "a{b}", "{a}:forced", "a+b",
	" ", "\n", "a\n", "a\r\n", "a\r\nb", "\t", "\x1b[2J", "\x7f", "\u202e", "\u2028",
	"*1\r\n$8\r\nFLUSHALL\r\n", "$-1\r\n", "-ERR\r\n", "+OK\r\n",
	"'); redis.call('FLUSHALL') --", "]]..redis.call('FLUSHALL')..[[", `\0`, `"`, "%s%d%!", "%q",
	"*", "?", "[a-b]", "lock:*",
	"\xff", "\xfe\xff", "\xc3", "a\xffb", "ä", "a\u0308",
	"lock:a", "holdfast:token:{lock:a}", "holdfast:token:{a}", "holdfast:once:{lock:a}", "holdfast:waiters={a}",
	"redisson_lock__channel:{a}", "holdfast:group:{a}:lock:",
	strings.Repeat("x", 512), strings.Repeat("\xff", 512),
}

// namesUnder leaves out those that are holdfast's own under a prefix.
func namesUnder(prefix string) []string {
	return slices.DeleteFunc(slices.Clone(oddNames), func(name string) bool {
		return strings.HasPrefix(prefix+name, "holdfast:")
	})
}

// TestOddNames: each is taken as it is, by every strategy, and none reaches what belongs to another.
func TestOddNames(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"lock:", "", "{app}:", "\r\n\xff"} {
		rdb := testkit.Start(t).Client()
		locks, other := coretest.NewClient(t, rdb, core.WithPrefix(prefix)), coretest.NewClient(t, rdb, core.WithPrefix(prefix))
		for kind, strategy := range coretest.Strategies(locks) {
			t.Run(fmt.Sprintf("%q,%s", prefix, kind), func(t *testing.T) {
				names := namesUnder(prefix)
				leases := make(map[string]*core.Lease)
				for _, name := range names {
					lease, err := strategy(name).TryLock(t.Context(), core.WithTTL(coretest.Long))
					if err != nil {
						t.Fatalf("%q beside the others: %v", name, err)
					}
					leases[name] = lease
				}
				wantHolders(t, rdb, locks, prefix, leases)
				forceHalf(t, other, leases)
				wantHolders(t, rdb, locks, prefix, leases)
				handOver(t, other, kind, leases)
			})
		}
	}
}

// wantHolders checks that each name is held by the owner to which it was granted.
func wantHolders(t *testing.T, rdb *redis.Client, locks *core.Client, prefix string, leases map[string]*core.Lease) {
	t.Helper()
	for name, lease := range leases {
		info, err := locks.Inspect(t.Context(), name)
		if err != nil || info.Name != name || len(info.Holders) != 1 || info.Holders[0].Owner != lease.Owner() {
			t.Errorf("%q: %+v, %v", name, info, err)
		}
		if rdb.Exists(t.Context(), prefix+name).Val() != 1 {
			t.Errorf("%q is not under its name in Redis", name)
		}
		if lease.Name() != name {
			t.Errorf("the lease of %q is called %q", name, lease.Name())
		}
		if lease.Context().Err() != nil {
			t.Errorf("%q was lost", name)
		}
	}
}

// forceHalf takes every other lock from its holder, and drops it from leases.
func forceHalf(t *testing.T, locks *core.Client, leases map[string]*core.Lease) {
	t.Helper()
	for i, name := range slices.Sorted(maps.Keys(leases)) {
		if i%2 == 0 {
			continue
		}
		if forced, err := locks.ForceUnlock(t.Context(), name); !forced || err != nil {
			t.Errorf("ForceUnlock(%q) = %v, %v", name, forced, err)
		}
		delete(leases, name)
	}
}

// handOver lets another caller wait for each lock and get it. Errors tell names so that they stay on one line.
func handOver(t *testing.T, other *core.Client, kind string, leases map[string]*core.Lease) {
	t.Helper()
	rival := coretest.Strategies(other)[kind]
	if strings.HasSuffix(kind, "Read") { // those would come in beside
		rival = other.Write
	}
	waiting := make(map[string]<-chan error)
	for name := range leases {
		_, err := rival(name).TryLock(t.Context())
		coretest.WantErr(t, err, core.ErrNotAcquired)
		if strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("the error is not printable: %q", err)
		}
		waiting[name] = coretest.LockLater(rival(name))
	}
	for name := range leases {
		testkit.Eventually(t, coretest.Within, "somebody to wait", func() bool {
			info, err := other.Inspect(t.Context(), name)
			return err == nil && info.Waiters+len(info.Queue) > 0
		})
	}
	for name, lease := range leases {
		coretest.Unlock(t, lease)
		if err := coretest.Receive(t, waiting[name]); err != nil {
			t.Errorf("who waited for %q: %v", name, err)
		}
	}
}

// TestUnusualKeysOfOnce: each has a record of its own, beside the lock of that name, and is read as it was written.
func TestUnusualKeysOfOnce(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for _, prefix := range []string{"lock:", "", "{app}:", "\r\n\xff"} {
		rdb := testkit.Start(t).Client()
		locks := coretest.NewClient(t, rdb, core.WithPrefix(prefix), core.WithTTL(coretest.Long))
		names := namesUnder(prefix)
		groups := make(map[string][]string)
		for _, name := range names {
			coretest.MustLock(t, locks.Mutex(name))
			var opts []core.OnceOption
			if strings.Contains(prefix+name, "{") {
				_, rest, _ := strings.Cut(prefix+name, "{")
				tag, _, _ := strings.Cut(rest, "}")
				groups[tag] = append(groups[tag], name)
				opts = append(opts, core.WithGroup())
			}
			if err := coretest.MustBegin(t, locks.Once(name, opts...)).Complete(ctx, []byte(name)); err != nil {
				t.Errorf("%q: %v", name, err)
			}
		}
		for _, name := range names {
			if r := coretest.MustPeek(t, locks.Once(name)); r.Key != name || string(r.Value) != name || r.Attempt != 1 {
				t.Errorf("%q: %+v", name, r)
			}
		}
		for tag, want := range groups {
			records, err := locks.GroupRecords(ctx, want[0])
			var got []string
			for _, r := range records {
				got = append(got, r.Key)
			}
			slices.Sort(got)
			slices.Sort(want)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("group %q with prefix %q: %q, %v; want %q", tag, prefix, got, err, want)
			}
		}
		coretest.Forget(t, locks.Once("a"))
		if r := coretest.MustPeek(t, locks.Once("a")); r.State != core.StateNone {
			t.Errorf("forgotten: %+v", r)
		}
		for _, name := range names[1:] {
			if r := coretest.MustPeek(t, locks.Once(name)); r.State != core.StateCompleted {
				t.Errorf("%q went with another: %+v", name, r)
			}
		}
	}
}

// entrances are all ways in which a name comes to a client.
func entrances(ctx context.Context, c *core.Client, name string) map[string]error {
	errs := make(map[string]error)
	for kind, strategy := range coretest.Strategies(c) {
		_, errs[kind+".Lock"] = strategy(name).Lock(ctx)
		_, errs[kind+".TryLock"] = strategy(name).TryLock(ctx)
	}
	_, errs["Multi.Lock"] = core.Multi(c.Mutex("a"), c.Mutex(name), c.Mutex(name)).Lock(ctx)
	_, errs["Multi.TryLock"] = core.Multi(c.Fair(name)).TryLock(ctx)
	_, errs["Inspect"] = c.Inspect(ctx, name)
	_, errs["ForceUnlock"] = c.ForceUnlock(ctx, name)
	_, errs["Records"] = c.GroupRecords(ctx, name)
	o := c.Once(name, core.WithGroup())
	_, errs["Once.Begin"] = o.Begin(ctx)
	_, errs["Once.Do"] = o.Do(ctx, coretest.Answers(nil, ""))
	_, errs["Once.Peek"] = o.Peek(ctx)
	errs["Once.Forget"], errs["Once.Resolve"] = coretest.ForgetNow(ctx, o), coretest.ResolveNow(ctx, o, nil)
	return errs
}

// TestRefusedNames: each is refused wherever it comes in, with what is wrong with it, before Redis hears of it. It is no
// parallel test, because it counts what is allocated.
func TestRefusedNames(t *testing.T) {
	server := testkit.Start(t)
	locks := coretest.NewClient(t, server.Client())
	bare := coretest.NewClient(t, server.Client(), core.WithPrefix(""))
	huge := strings.Repeat("\xff{\n", 10<<20/3)
	for _, test := range []struct {
		client *core.Client
		name   string
		says   string
	}{
		{locks, "", "empty"},
		{locks, strings.Repeat("x", 513), "513 bytes, at most 512"},
		{locks, huge, fmt.Sprintf("%d bytes, at most 512", len(huge))},
		{bare, huge, fmt.Sprintf("%d bytes, at most 512", len(huge))},
		{locks, "\x00", `"\x00" contains a NUL byte`},
		{locks, "a\r\n\x00b", `"a\r\n\x00b" contains a NUL byte`},
		{locks, "{", `braces of "lock:{" are not balanced`},
		{locks, "}", "not balanced"},
		{locks, "}{", "not balanced"},
		{locks, "{{a}", "not balanced"},
		{locks, "{a}}", "not balanced"},
		{locks, "\n{", `"lock:\n{"`},
		{locks, strings.Repeat("{", 512), "not balanced"},
		{locks, "{}", `the first pair of braces in "lock:{}" is empty`},
		{locks, "a{}{b}", "is empty"},
		{bare, "holdfast:", "reserved"},
		{bare, "holdfast:token:{a}", "reserved"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		errs := entrances(t.Context(), test.client, test.name)
		runtime.ReadMemStats(&after)
		for what, err := range errs {
			switch {
			case !errors.Is(err, core.ErrInvalidName) || !strings.Contains(err.Error(), test.says):
				t.Errorf("%s: %.200v, want %q", what, err, test.says)
			case len(err.Error()) > 4*512+200 || strings.ContainsAny(err.Error(), "\n\r\x00"):
				t.Errorf("%s: %d bytes of error: %.200q", what, len(err.Error()), err)
			}
		}
		// But for the name of the Multi, which is made of the names of its members.
		if got, most := after.TotalAlloc-before.TotalAlloc, uint64(2*len(test.name)+1<<20); got > most {
			t.Errorf("%.20q: %d bytes allocated", test.name, got)
		}
	}
	for command := range server.CommandStats() {
		if strings.HasPrefix(command, "eval") {
			t.Errorf("Redis was asked: %s", command)
		}
	}
}

// TestRefusedPrefixes: the same for what is put in front of names.
func TestRefusedPrefixes(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	for prefix, says := range map[string]string{
		"a\x00":                     `WithPrefix("a\x00"): contains a NUL byte`,
		strings.Repeat("x", 513):    "513 bytes",
		strings.Repeat("x", 10<<20): "10485760 bytes",
		"holdfast:":                 `"holdfast:" is reserved`,
		"a}":                        `WithPrefix("a}"): it closes a brace that is not open`,
		"a}{":                       "it closes a brace that is not open",
		"{}a":                       "its first pair of braces is empty",
	} {
		_, err := core.New(rdb, core.WithPrefix(prefix))
		coretest.WantInvalid(t, err, core.ErrInvalidOption, says)
		_, err = core.NewRedlock([]redis.UniversalClient{rdb, rdb, rdb}, core.WithPrefix(prefix))
		coretest.WantErr(t, err, core.ErrInvalidOption)
		if len(err.Error()) > 1000 {
			t.Errorf("%d bytes of error", len(err.Error()))
		}
	}
	_, err := coretest.NewClient(t, rdb, core.WithPrefix("hold")).Mutex("fast:a").TryLock(t.Context())
	coretest.WantInvalid(t, err, core.ErrInvalidName, "reserved")
	coretest.MustLock(t, coretest.NewClient(t, rdb, core.WithPrefix("a{")).Mutex("b}")) // one pair, brought by both
}
