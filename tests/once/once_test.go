package once_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
	"github.com/redis/go-redis/v9"
)

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
	fields, err := rdb.HGetAll(context.Background(), coretest.RecordOf(name)).Result()
	if err != nil {
		t.Fatal(err)
	}
	return fields
}

// holding makes a Once whose failures are held.
func holding(locks *core.Client, name string) *core.Once {
	return locks.Once(name, core.WithFailurePolicy(core.HoldFailures))
}

func wantStateOnly(t testing.TB, o *core.Once, state core.State) {
	t.Helper()
	if r := coretest.MustPeek(t, o); r.State != state {
		t.Errorf("%s: %+v, want %q", o.Key(), r, state)
	}
}

// wantExpiries checks that nothing stays forever.
func wantExpiries(t testing.TB, rdb *redis.Client) {
	t.Helper()
	for _, key := range rdb.Keys(context.Background(), "*").Val() {
		if rdb.PTTL(context.Background(), key).Val() == -1 {
			t.Errorf("%s stays for ever", key)
		}
	}
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
		if got, err := o.Do(ctx, coretest.Answers(nil, "")); err != nil || !got.Replayed || !got.Omitted {
			t.Errorf("%s: %+v, %v", o.Key(), got, err)
		}
	case core.StateUnknown:
		_, err := o.Begin(ctx)
		coretest.WantErr(t, err, core.ErrOutcomeUnknown)
	default:
		if a := coretest.MustBegin(t, o); a.Number() != 2 {
			t.Errorf("%s: attempt %d", o.Key(), a.Number())
		}
	}
}

func locksOf(t testing.TB, rdb *redis.Client, name string) *core.Once {
	t.Helper()
	return coretest.NewClient(t, rdb, core.WithTTL(coretest.Long)).Once(name)
}

// wantExpiry checks that a record does not stay forever.
func wantExpiry(t testing.TB, rdb *redis.Client, name string) {
	t.Helper()
	if rdb.PTTL(context.Background(), coretest.RecordOf(name)).Val() == -1 {
		t.Errorf("%s stays for ever: %v", name, contents(t, rdb, name))
	}
}
