package docs_test

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/markdown"
)

// keyRow is a row of the table of keys in docs/redis.md.
type keyRow struct {
	key   string
	kind  string // as TYPE says
	least int64  // bytes: the first number of the column
	most  int64  // the same with two of what the column counts, such as waiters
	match *regexp.Regexp
	found int // keys
}

// everyKey returns name, type, TTL and bytes of each key. It is one script, so that no key expires between two answers.
var everyKey = redis.NewScript(`
local reply = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
	table.insert(reply, key)
	table.insert(reply, redis.call('TYPE', key).ok)
	table.insert(reply, redis.call('PTTL', key))
	table.insert(reply, redis.call('MEMORY', 'USAGE', key, 'SAMPLES', 0))
end
return reply`)

// TestEveryKey leaves every key of the table of docs/redis.md in Redis, but that of asynqlock, and compares all keys of Redis
// with the table: each key has one row, and each row a key, with its type, an expiry, and about its size.
func TestEveryKey(t *testing.T) {
	t.Parallel()
	rows := keyRows(t)
	rdb := testkit.Start(t).Client()
	leaveEveryKey(t, rdb)
	ctx := context.Background()
	sized := strings.Contains(rdb.Info(ctx, "server").Val(), "redis_version:7.0.") // the page has its bytes; others count differently
	keys, err := everyKey.Run(ctx, rdb, nil).Slice()
	if err != nil {
		t.Fatal(err)
	}
	for key := range slices.Chunk(keys, 4) {
		name, kind, ttl, size := key[0].(string), key[1].(string), key[2].(int64), key[3].(int64)
		at := slices.IndexFunc(rows, func(r *keyRow) bool { return r.match.MatchString(name) })
		if at < 0 {
			t.Errorf("the page has no row for %s", name)
			continue
		}
		row := rows[at]
		row.found++
		if kind != row.kind {
			t.Errorf("%s is a %s, the page says %s", name, kind, row.kind)
		}
		if ttl < 0 {
			t.Errorf("%s has no expiry", name)
		}
		if sized && (size < row.least/2 || size > row.most*3/2) {
			t.Errorf("%s has %d bytes, the page says %d to %d", name, size, row.least, row.most)
		}
	}
	for _, row := range rows {
		if row.found == 0 && !strings.HasPrefix(row.key, "asynqlock:") {
			t.Errorf("the test leaves no %s", row.key)
		}
	}
}

// keyRows reads the table.
func keyRows(t *testing.T) (rows []*keyRow) {
	t.Helper()
	page, err := markdown.Read(root, "docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("^\\| `([^`]+)`[^|]* \\| (string|hash|sorted set) \\| [^|]* \\| (?:(\\d+)(?:\\D+(\\d+)[^|]*)?)?[^|]* \\| [^|]* \\| [^|]* \\|$")
	placeholder := regexp.MustCompile(`<[a-z]+>`)
	for _, line := range page.Lines {
		found := row.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		r := &keyRow{key: found[1], kind: strings.Replace(found[2], "sorted set", "zset", 1)}
		r.least, _ = strconv.ParseInt(found[3], 10, 64)
		more, _ := strconv.ParseInt(found[4], 10, 64)
		r.most = r.least + 2*more
		pattern := regexp.QuoteMeta(strings.Replace(r.key, "<lock>", "lock:<name>", 1))
		pattern = strings.NewReplacer(`:\{lock`, `(:\{|=)lock`, `\}`, `\}?`).Replace(pattern)
		r.match = regexp.MustCompile("^" + placeholder.ReplaceAllString(pattern, `[a-z0-9:{}-]+`) + "$")
		rows = append(rows, r)
	}
	if len(rows) < 10 {
		t.Fatalf("found %d rows", len(rows))
	}
	return rows
}

// leaveEveryKey leaves locks held, waited for and forced out, and records.
func leaveEveryKey(t *testing.T, rdb *redis.Client) {
	t.Helper()
	locks, other := newLocks(t, rdb, core.WithPrefix("lock:")), newLocks(t, rdb.WithTimeout(time.Minute))
	hold := func(l core.Locker, opts ...core.LockOption) *core.Lease {
		t.Helper()
		lease, err := l.Lock(t.Context(), opts...)
		if err != nil {
			t.Fatal(err)
		}
		return lease
	}
	wait := func(l core.Locker) {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = l.Lock(ctx)
		}()
		t.Cleanup(func() { cancel(); <-done })
	}
	hold(locks.Mutex("mutex"))
	wait(other.Mutex("mutex"))
	hold(locks.Read("shared"))
	hold(locks.Read("shared"))
	hold(locks.Semaphore("permits", 2))
	hold(locks.Semaphore("permits", 2))
	hold(locks.Write("queue"))
	wait(other.Fair("queue"))
	wait(other.Read("queue"))
	hold(locks.Mutex("forced"))
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
	testkit.Eventually(t, 20*time.Second, "all to wait", func() bool {
		ctx := context.Background()
		return rdb.Exists(ctx, "holdfast:waiting_clients:{lock:mutex}", "holdfast:exclusive_queue:{lock:queue}",
			"holdfast:shared_queue:{lock:queue}").Val() == 3
	})
	// Last, because it is remembered for some seconds only.
	if err := hold(locks.Mutex("short"), core.WithTTL(5*time.Second)).Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
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
