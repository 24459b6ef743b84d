package core_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// answers makes a run that returns value and counts how often it ran.
func answers(ran *atomic.Int64, value string) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) {
		ran.Add(1)
		return []byte(value), nil
	}
}

// mustBegin begins an attempt that cannot be refused.
func mustBegin(t testing.TB, o *core.Once) *core.Attempt {
	t.Helper()
	a, err := o.Begin(context.Background())
	if err != nil {
		t.Fatalf("Begin: %v", err)
	}
	return a
}

func mustPeek(t testing.TB, o *core.Once) core.Record {
	t.Helper()
	r, err := o.Peek(context.Background())
	if err != nil {
		t.Fatalf("Peek: %v", err)
	}
	return r
}

// recordOf is the key of a record.
func recordOf(name string) string {
	if strings.Contains(name, "{") {
		return "holdfast:once=lock:" + name
	}
	return "holdfast:once:{lock:" + name + "}"
}

// abandon lets the lease of an attempt end, as far as Redis knows.
func abandon(t testing.TB, rdb *redis.Client, name string) {
	t.Helper()
	if !rdb.HExists(context.Background(), recordOf(name), "ttl").Val() {
		t.Errorf("%s had no lease", name)
	}
	rdb.HSet(context.Background(), recordOf(name), "deadline", 0)
}

// leaseEnd returns when the lease of an attempt ends, in ms, as far as Redis knows.
func leaseEnd(t testing.TB, rdb *redis.Client, name string) int64 {
	t.Helper()
	fields := contents(t, rdb, name)
	if fields["deadline"] != "" {
		return number(t, fields["deadline"])
	}
	return number(t, fields["token"])/1000 + number(t, fields["ttl"])
}

// number returns the integer that a field has.
func number(t testing.TB, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Errorf("a field has no integer: %v", err)
	}
	return n
}

// contents returns the record as it lies in Redis.
func contents(t testing.TB, rdb *redis.Client, name string) map[string]string {
	t.Helper()
	fields, err := rdb.HGetAll(context.Background(), recordOf(name)).Result()
	if err != nil {
		t.Fatal(err)
	}
	return fields
}

// wantState checks what the record says, and of which attempt.
func wantState(t testing.TB, o *core.Once, state core.State, attempt int) core.Record {
	t.Helper()
	r := mustPeek(t, o)
	if r.State != state || r.Attempt != attempt {
		t.Errorf("%s: record %+v, want %q of attempt %d", o.Key(), r, state, attempt)
	}
	return r
}

// holding makes a Once whose failures are held.
func holding(locks *core.Client, name string) *core.Once {
	return locks.Once(name, core.WithFailurePolicy(core.HoldFailures))
}

// forgetNow deletes a record, whatever it says now. An error of Peek does not hide that of ForgetRunning.
func forgetNow(ctx context.Context, o *core.Once) error {
	seen, _ := o.Peek(ctx)
	return o.ForgetRunning(ctx, seen)
}

// resolveNow resolves a record, whatever it says now.
func resolveNow(ctx context.Context, o *core.Once, value []byte) error {
	seen, _ := o.Peek(ctx)
	return o.Resolve(ctx, seen, value)
}

func forget(t testing.TB, o *core.Once) {
	t.Helper()
	if err := forgetNow(context.Background(), o); err != nil {
		t.Errorf("Forget: %v", err)
	}
}

// endEveryWay uses all there is of a Once of that name, with two clients.
func endEveryWay(t testing.TB, locks, other *core.Client, name string) {
	t.Helper()
	ctx := context.Background()
	once := locks.Once(name, core.WithTTL(3*time.Second), core.WithFingerprint([]byte("a")))
	follower := other.Once(name, core.WithWait(within))
	if err := mustBegin(t, once).Release(ctx); err != nil {
		t.Errorf("%s: release: %v", name, err)
	}
	a := mustBegin(t, once)
	until := a.ValidUntil()
	testkit.Eventually(t, within, "a renewal", func() bool {
		return a.ValidUntil().After(until.Add(500 * time.Millisecond))
	})
	if err := a.Declare(ctx, core.StateUnknown); err != nil {
		t.Errorf("%s: declare: %v", name, err)
	}
	done := make(chan error, 1)
	go func() {
		got, err := follower.Do(ctx, answers(nil, ""))
		if string(got.Value) != "value" || got.Attempt != 2 {
			err = errors.Join(err, fmt.Errorf("%+v", got))
		}
		done <- err
	}()
	_, err := other.Once(name).Begin(ctx)
	wantErr(t, err, core.ErrInProgress)
	_, err = other.Once(name, core.WithFingerprint([]byte("b"))).Begin(ctx)
	wantErr(t, err, core.ErrFingerprintMismatch)
	if err := a.Complete(ctx, []byte("value")); err != nil {
		t.Errorf("%s: complete: %v", name, err)
	}
	if err := receive(t, done); err != nil {
		t.Errorf("%s: waiter: %v", name, err)
	}
	forget(t, follower)
	// Two of a fixed lease: the one is followed, the other held.
	fixed := locks.Once(name, core.WithFixedTTL(500*time.Millisecond))
	zombie := mustBegin(t, fixed)
	b, err := follower.Begin(ctx)
	if err != nil {
		t.Fatalf("%s: takeover: %v", name, err)
	}
	if b.Number() != 2 || b.Token() <= zombie.Token() {
		t.Errorf("%s: attempt %d, token %d after %d", name, b.Number(), b.Token(), zombie.Token())
	}
	wantErr(t, zombie.Complete(ctx, nil), core.ErrStale)
	if err := b.Hold(ctx, "reason"); err != nil {
		t.Errorf("%s: hold: %v", name, err)
	}
	wantState(t, once, core.StateUnknown, 2)
	if err := resolveNow(ctx, follower, []byte("found out")); err != nil {
		t.Errorf("%s: resolve: %v", name, err)
	}
	if r := wantState(t, once, core.StateCompleted, 2); string(r.Value) != "found out" {
		t.Errorf("%s: %+v", name, r)
	}
	wantErr(t, resolveNow(ctx, once, nil), core.ErrCompleted)
}

func wantStateOnly(t testing.TB, o *core.Once, state core.State) {
	t.Helper()
	if r := mustPeek(t, o); r.State != state {
		t.Errorf("%s: %+v, want %q", o.Key(), r, state)
	}
}

// loadOnce makes the server know the scripts of Once, so that each first request is executed.
func loadOnce(t testing.TB, rdb *redis.Client) {
	t.Helper()
	for _, parts := range [][]string{
		beginParts, renewParts, declareParts, completeParts, holdParts, resolveParts, releaseParts, forgetParts,
		{"oncescript/common", "oncescript/group", "oncescript/enlist"},
		{"oncescript/common", "oncescript/peek"},
	} {
		if err := luaScript(t, parts...).Load(context.Background(), rdb).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// wantExpiries checks that nothing stays for ever.
func wantExpiries(t testing.TB, rdb *redis.Client) {
	t.Helper()
	for _, key := range rdb.Keys(context.Background(), "*").Val() {
		if rdb.PTTL(context.Background(), key).Val() == -1 {
			t.Errorf("%s stays for ever", key)
		}
	}
}

// countEveryWay uses all there is of a bounded group, with two clients.
func countEveryWay(t testing.TB, locks, other *core.Client) {
	t.Helper()
	ctx := context.Background()
	options := []core.OnceOption{
		core.WithTTL(3 * time.Second), core.WithQuota(2), core.WithMaxValue(1000), core.WithQuotaBytes(6000),
	}
	of := func(c *core.Client, name string) *core.Once { return c.Once("{bounded}:"+name, options...) }
	if err := mustBegin(t, of(locks, "released")).Release(ctx); err != nil {
		t.Error(err)
	}
	unlock(t, mustLock(t, locks.Mutex("{bounded}:fixed"))) // its token is heeded
	late := mustBegin(t, locks.Once("{bounded}:fixed", append(options, core.WithFixedTTL(500*time.Millisecond))...))
	a := mustBegin(t, of(locks, "held"))
	until := a.ValidUntil()
	testkit.Eventually(t, within, "a renewal", func() bool { return a.ValidUntil().After(until.Add(500 * time.Millisecond)) })
	next, err := other.Once("{bounded}:fixed", append(options, core.WithWait(within))...).Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Release(ctx); err != nil {
		t.Error(err)
	}
	if err := late.Complete(ctx, nil); err != nil { // the other one has taken no effect
		t.Error(err)
	}
	_, err = of(other, "more").Begin(ctx)
	wantErr(t, err, core.ErrTooManyKeys)
	if err := a.Hold(ctx, "reason"); err != nil {
		t.Error(err)
	}
	if err := resolveNow(ctx, other.Once("{bounded}:held"), nil); err != nil {
		t.Error(err)
	}
	if records, err := other.Records(ctx, "{bounded}"); err != nil || len(records) != 2 {
		t.Errorf("%+v, %v", records, err)
	}
	forget(t, other.Once("{bounded}:held"))
	forget(t, other.Once("{bounded}:fixed"))
	mustBegin(t, of(other, "more"))
}

// groupOf is the key of a group.
func groupOf(tag string) string { return "holdfast:group:{" + tag + "}:lock:" }

// lasting returns the keys that are there for longer than the marks of ends are, and the bytes that they take.
func lasting(t testing.TB, rdb *redis.Client) (keys []string, bytes int64) {
	t.Helper()
	ctx := context.Background()
	for _, key := range rdb.Keys(ctx, "*").Val() {
		if strings.HasPrefix(key, "holdfast:released") || strings.HasPrefix(key, "holdfast:client") {
			continue
		}
		keys, bytes = append(keys, key), bytes+rdb.MemoryUsage(ctx, key, 0).Val()
	}
	return keys, bytes
}

// wantFollower begins the attempt after one that is over, which its state may refuse.
func wantFollower(t *testing.T, o *core.Once, state core.State) {
	t.Helper()
	ctx := context.Background()
	switch state {
	case core.StateCompleted:
		_, err := o.Begin(ctx)
		var done *core.CompletedError
		if !errors.As(err, &done) || !done.Record.Omitted || done.Record.Value != nil {
			t.Errorf("%s: %v", o.Key(), err)
		}
		if got, err := o.Do(ctx, answers(nil, "")); err != nil || !got.Replayed || !got.Omitted {
			t.Errorf("%s: %+v, %v", o.Key(), got, err)
		}
	case core.StateUnknown:
		_, err := o.Begin(ctx)
		wantErr(t, err, core.ErrOutcomeUnknown)
	default:
		if a := mustBegin(t, o); a.Number() != 2 {
			t.Errorf("%s: attempt %d", o.Key(), a.Number())
		}
	}
}

func locksOf(t testing.TB, rdb *redis.Client, name string) *core.Once {
	t.Helper()
	return newClient(t, rdb, core.WithTTL(long)).Once(name)
}

// wantExpiry checks that a record does not stay for ever.
func wantExpiry(t testing.TB, rdb *redis.Client, name string) {
	t.Helper()
	if rdb.PTTL(context.Background(), recordOf(name)).Val() == -1 {
		t.Errorf("%s stays for ever: %v", name, contents(t, rdb, name))
	}
}
