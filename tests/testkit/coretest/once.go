package coretest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// Answers makes a run that returns value and counts how often it ran.
func Answers(ran *atomic.Int64, value string) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) {
		ran.Add(1)
		return []byte(value), nil
	}
}

// MustBegin begins an attempt that cannot be refused.
func MustBegin(t testing.TB, o *core.Once) *core.Attempt {
	t.Helper()
	a, err := o.Begin(context.Background())
	if err != nil {
		t.Fatalf("Begin: %v", err)
	}
	return a
}

func MustPeek(t testing.TB, o *core.Once) core.Record {
	t.Helper()
	r, err := o.Peek(context.Background())
	if err != nil {
		t.Fatalf("Peek: %v", err)
	}
	return r
}

// RecordOf is the key of a record.
func RecordOf(name string) string {
	if strings.Contains(name, "{") {
		return "holdfast:once=lock:" + name
	}
	return "holdfast:once:{lock:" + name + "}"
}

// Abandon lets the lease of an attempt end, as far as Redis knows.
func Abandon(t testing.TB, rdb *redis.Client, name string) {
	t.Helper()
	if !rdb.HExists(context.Background(), RecordOf(name), "ttl").Val() {
		t.Errorf("%s had no lease", name)
	}
	rdb.HSet(context.Background(), RecordOf(name), "deadline", 0)
}

// WantState checks what the record says, and of which attempt.
func WantState(t testing.TB, o *core.Once, state core.State, attempt int) core.Record {
	t.Helper()
	r := MustPeek(t, o)
	if r.State != state || r.Attempt != attempt {
		t.Errorf("%s: record %+v, want %q of attempt %d", o.Key(), r, state, attempt)
	}
	return r
}

// ForgetNow deletes a record, whatever it says now. An error of Peek does not hide the error of ForgetRunning.
func ForgetNow(ctx context.Context, o *core.Once) error {
	seen, _ := o.Peek(ctx)
	return o.ForgetRunning(ctx, seen)
}

// ResolveNow resolves a record, whatever it says now.
func ResolveNow(ctx context.Context, o *core.Once, value []byte) error {
	seen, _ := o.Peek(ctx)
	return o.Resolve(ctx, seen, value)
}

func Forget(t testing.TB, o *core.Once) {
	t.Helper()
	if err := ForgetNow(context.Background(), o); err != nil {
		t.Errorf("Forget: %v", err)
	}
}

// EndEveryWay uses all there is of a Once of that name, with two clients.
func EndEveryWay(t testing.TB, locks, other *core.Client, name string) {
	t.Helper()
	ctx := context.Background()
	once := locks.Once(name, core.WithTTL(3*time.Second), core.WithFingerprint([]byte("a")))
	follower := other.Once(name, core.WithWait(Within))
	if err := MustBegin(t, once).Release(ctx); err != nil {
		t.Errorf("%s: release: %v", name, err)
	}
	a := MustBegin(t, once)
	until := a.ValidUntil()
	testkit.Eventually(t, Within, "a renewal", func() bool {
		return a.ValidUntil().After(until.Add(500 * time.Millisecond))
	})
	if err := a.Declare(ctx, core.StateUnknown); err != nil {
		t.Errorf("%s: declare: %v", name, err)
	}
	done := make(chan error, 1)
	go func() {
		got, err := follower.Do(ctx, Answers(nil, ""))
		if string(got.Value) != "value" || got.Attempt != 2 {
			err = errors.Join(err, fmt.Errorf("%+v", got))
		}
		done <- err
	}()
	_, err := other.Once(name).Begin(ctx)
	WantErr(t, err, core.ErrInProgress)
	_, err = other.Once(name, core.WithFingerprint([]byte("b"))).Begin(ctx)
	WantErr(t, err, core.ErrFingerprintMismatch)
	if err := a.Complete(ctx, []byte("value")); err != nil {
		t.Errorf("%s: complete: %v", name, err)
	}
	if err := Receive(t, done); err != nil {
		t.Errorf("%s: waiter: %v", name, err)
	}
	Forget(t, follower)
	// Two of a fixed lease: the one is followed, the other held.
	fixed := locks.Once(name, core.WithFixedTTL(500*time.Millisecond))
	zombie := MustBegin(t, fixed)
	b, err := follower.Begin(ctx)
	if err != nil {
		t.Fatalf("%s: takeover: %v", name, err)
	}
	if b.Number() != 2 || b.Token() <= zombie.Token() {
		t.Errorf("%s: attempt %d, token %d after %d", name, b.Number(), b.Token(), zombie.Token())
	}
	WantErr(t, zombie.Complete(ctx, nil), core.ErrStale)
	if err := b.Hold(ctx, "reason"); err != nil {
		t.Errorf("%s: hold: %v", name, err)
	}
	WantState(t, once, core.StateUnknown, 2)
	if err := ResolveNow(ctx, follower, []byte("found out")); err != nil {
		t.Errorf("%s: resolve: %v", name, err)
	}
	if r := WantState(t, once, core.StateCompleted, 2); string(r.Value) != "found out" {
		t.Errorf("%s: %+v", name, r)
	}
	WantErr(t, ResolveNow(ctx, once, nil), core.ErrCompleted)
}

// LoadOnce makes the server know the scripts of Once, so that each first request is executed.
func LoadOnce(t testing.TB, rdb *redis.Client) {
	t.Helper()
	for _, parts := range [][]string{
		BeginParts, RenewParts, DeclareParts, FinishParts, ResolveParts, ReleaseParts, ForgetParts,
		{"once/common", "once/group", "once/enlist"},
		{"once/common", "once/peek"},
	} {
		if err := LuaScript(t, parts...).Load(context.Background(), rdb).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// WantRecorded waits until the record has the completion of an attempt.
func WantRecorded(t *testing.T, o *core.Once, a *core.Attempt) core.Record {
	t.Helper()
	var r core.Record
	testkit.Eventually(t, Within, "the end to be recorded", func() bool {
		r = MustPeek(t, o)
		return r.Token == a.Token() && (r.State == core.StateCompleted || r.State == core.StateUnknown)
	})
	if r.Attempt != a.Number() {
		t.Errorf("attempt %d, want %d", r.Attempt, a.Number())
	}
	return r
}

// Unconfirmed returns a client whose Redis is unreachable, a log, and an attempt that runs. The ends of three other attempts are not
// confirmed.
func Unconfirmed(t *testing.T, server *testkit.Server, relay *testkit.Relay) (*core.Client, *Record, *core.Attempt) {
	t.Helper()
	log := &Record{}
	locks := NewClient(t, relay.Client(), core.WithTTL(Long), core.WithLogger(TextLogger(log)))
	LoadOnce(t, server.Client())
	running := MustBegin(t, locks.Once("running"))
	done, held, idle := MustBegin(t, locks.Once("done")), MustBegin(t, locks.Once("held")), MustBegin(t, locks.Once("idle"))
	relay.Refuse(true)
	relay.Reset()
	WantUnconfirmed(t, func(ctx context.Context) error { return done.Complete(ctx, []byte("value")) })
	WantUnconfirmed(t, func(ctx context.Context) error { return held.Hold(ctx, "reason") })
	WantUnconfirmed(t, idle.Release)
	return locks, log, running
}

// WantUnconfirmed ends an attempt in an outage, with a context that ends soon.
func WantUnconfirmed(t *testing.T, end func(context.Context) error) {
	t.Helper()
	short, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	WantErr(t, end(short), core.ErrUnavailable)
}

// The parts of the scripts of Once.
var (
	BeginParts   = []string{"once/begin_fast", "once/common", "once/group", "once/begin"}
	RenewParts   = []string{"once/common", "once/renew"}
	DeclareParts = []string{"once/common", "once/declare"}
	FinishParts  = []string{
		"once/complete_fast", "publish", "once/common", "once/group", "once/finish_common", "once/finish",
	}
	ReleaseParts = []string{"publish", "once/common", "once/group", "once/release"}
	ResolveParts = []string{
		"publish", "once/common", "once/seen", "once/group", "once/marks", "once/finish_common",
		"once/resolve",
	}
	ForgetParts = []string{"publish", "once/common", "once/seen", "once/marks", "once/forget"}
)
