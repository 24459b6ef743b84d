package docs_test

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// start starts a server. It skips the test where no server is installed, for "make -C lab portable".
func start(t *testing.T) *testkit.Server {
	t.Helper()
	if _, err := exec.LookPath(cmp.Or(os.Getenv("HOLDFAST_REDIS_SERVER"), "redis-server")); err != nil {
		t.Skip(err)
	}
	return testkit.Start(t)
}

// newLocks returns a client that lives until the test ends.
func newLocks(t *testing.T, rdb redis.UniversalClient) *core.Client {
	t.Helper()
	locks, err := core.New(rdb, core.WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	return locks
}

// mustLock takes a lock.
func mustLock(t *testing.T, l *core.Lock, opts ...core.LockOption) *core.Lease {
	t.Helper()
	lease, err := l.Lock(t.Context(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// waitLater waits for a lock until the test ends.
func waitLater(t *testing.T, l *core.Lock) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = l.Lock(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// keyRow matches a row of the table of keys in docs/keys-and-rights.md: a key and its type.
var keyRow = regexp.MustCompile("(?m)^\\| `(<lock>|holdfast:[^`]+)`[^|]* \\| (string|hash|sorted set) \\|")

// everyKey returns type and name of each key. It is one script, so that no key expires between two answers.
var everyKey = redis.NewScript(`
local reply = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
	local expires = redis.call('PTTL', key) >= 0 and ' expires' or ''
	table.insert(reply, redis.call('TYPE', key).ok .. ' ' .. key .. expires)
end
return reply`)

// TestKeys leaves every key that locks and records have in Redis. Each has a row in the table of docs/keys-and-rights.md with its
// type, and an expiry; and each row has a key.
func TestKeys(t *testing.T) {
	t.Parallel()
	rows, found := make(map[string]*regexp.Regexp), make(map[string]bool)
	for _, row := range keyRow.FindAllStringSubmatch(readFile(t, "docs/keys-and-rights.md"), -1) {
		pattern := regexp.QuoteMeta(strings.Replace(row[1], "<lock>", "lock:<name>", 1))
		pattern = strings.NewReplacer(`:\{lock`, `(:\{|=)lock`, `\}`, `\}?`).Replace(pattern) // names with braces have none around them
		pattern = regexp.MustCompile(`<[a-z]+>`).ReplaceAllString(pattern, `[a-z0-9:{}-]+`)
		rows[row[1]] = regexp.MustCompile("^" + strings.Replace(row[2], "sorted set", "zset", 1) + " " + pattern + "$")
	}
	if len(rows) < 10 {
		t.Fatalf("found %d rows", len(rows))
	}
	rdb := start(t).Client()
	leaveEveryKey(t, rdb)
	keys, err := everyKey.Run(t.Context(), rdb, nil).StringSlice()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		key, expires := strings.CutSuffix(key, " expires")
		if !expires {
			t.Errorf("%s has no expiry", key)
		}
		known := false
		for name, row := range rows {
			if row.MatchString(key) {
				known, found[name] = true, true
			}
		}
		if !known {
			t.Errorf("docs/keys-and-rights.md has no row for the %s", key)
		}
	}
	for name := range rows {
		if !found[name] {
			t.Errorf("the test leaves no %s", name)
		}
	}
}

// leaveEveryKey leaves locks held, waited for and force-released, and records.
func leaveEveryKey(t *testing.T, rdb *redis.Client) {
	t.Helper()
	locks, other := newLocks(t, rdb), newLocks(t, rdb.WithTimeout(time.Minute))
	mustLock(t, locks.Mutex("mutex"))
	waitLater(t, other.Mutex("mutex"))
	mustLock(t, locks.Read("shared"))
	mustLock(t, locks.Read("shared"))
	mustLock(t, locks.Semaphore("permits", 2))
	mustLock(t, locks.Semaphore("permits", 2))
	mustLock(t, locks.Write("queue"))
	waitLater(t, other.Fair("queue"))
	waitLater(t, other.Read("queue"))
	mustLock(t, locks.Mutex("forced"))
	if _, err := locks.ForceUnlock(t.Context(), "forced"); err != nil {
		t.Fatal(err)
	}
	if lease, err := core.Multi(locks.Mutex("multi"), other.Mutex("multi")).TryLock(t.Context()); err == nil || lease != nil {
		t.Fatal("locked the same key twice")
	}
	once := locks.Once("{group}:once", core.WithGroup())
	for range 2 {
		if _, err := once.Do(t.Context(), func(context.Context) ([]byte, error) { return nil, nil }); err != nil {
			t.Fatal(err)
		}
	}
	leaveForgotten(t, locks.Once("forgotten"))
	leavePaused(t, locks)
	testkit.Eventually(t, 20*time.Second, "all to wait", func() bool {
		ctx := context.Background()
		return rdb.Exists(ctx, "holdfast:waiting_clients:{lock:mutex}", "holdfast:exclusive_queue:{lock:queue}",
			"holdfast:shared_queue:{lock:queue}").Val() == 3
	})
	// Last, because it is remembered for some seconds only.
	if err := mustLock(t, locks.Mutex("short"), core.WithTTL(5*time.Second)).Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// leavePaused leaves a job that is paused.
func leavePaused(t *testing.T, locks *core.Client) {
	t.Helper()
	c := cron.New()
	if _, err := cronlock.AddFunc(c, locks, "@yearly", "paused", func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	c.Start()
	defer c.Stop()
	job := cronlock.Job(locks, "paused")
	testkit.Eventually(t, 20*time.Second, "the job to be registered", func() bool { return job.Pause(t.Context(), "ada") == nil })
}

// leaveForgotten leaves the mark of a record that was forgotten, and a record of an attempt.
func leaveForgotten(t *testing.T, once *core.Once) {
	t.Helper()
	nothing := func(context.Context) ([]byte, error) { return nil, nil }
	_, err := once.Do(t.Context(), nothing)
	_, again := once.Do(t.Context(), nothing)
	seen, unread := once.Peek(t.Context())
	if err := errors.Join(err, again, unread, once.Forget(t.Context(), seen)); err != nil {
		t.Fatal(err)
	}
	if _, err := once.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestACL runs the command of docs/keys-and-rights.md that makes a user. It gives the rights that the page lists, with which
// the tests of core run, and the user can lock.
func TestACL(t *testing.T) {
	t.Parallel()
	server := start(t)
	admin := server.Client()
	rights := func(user, command string) string {
		args := []any{}
		for word := range strings.FieldsSeq(strings.NewReplacer("`", " ", " and\n", " ", "'", "", "\\\n", "").Replace(command)) {
			args = append(args, word)
		}
		if err := admin.Do(t.Context(), args...).Err(); err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		for _, line := range admin.Do(t.Context(), "ACL", "LIST").Val().([]any) {
			if rules, ok := strings.CutPrefix(line.(string), "user "+user+" "); ok {
				words := slices.DeleteFunc(strings.Fields(rules), func(rule string) bool { return rule[0] == '#' }) // the password
				slices.Sort(words)
				return strings.Join(words, " ")
			}
		}
		return ""
	}
	list := regexp.MustCompile("(?s)A Redis user needs (.*?)\\.\n").FindStringSubmatch(readFile(t, "docs/keys-and-rights.md"))
	if list == nil {
		t.Fatal("docs/keys-and-rights.md does not list the rights")
	}
	listed := rights("listed", "ACL SETUSER listed on >a-long-password "+list[1])
	command := strings.TrimPrefix(blockOf(t, "docs/keys-and-rights.md", "redis-cli"), "redis-cli ")
	if got := rights("locks", command); got != listed {
		t.Errorf("the command gives %s\nthe list is    %s", got, listed)
	}
	user := server.Client(func(o *redis.Options) { o.Username, o.Password = "locks", "a-long-password" })
	if err := mustLock(t, newLocks(t, user).Mutex("order:42")).Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}
