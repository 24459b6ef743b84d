package once_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestOnceInput: every value that cannot work is refused by name, by whichever method meets it first.
func TestOnceInput(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb)
	for name, option := range map[string]core.OnceOption{
		"WithRetention(9ms)":         core.WithRetention(9 * time.Millisecond),
		"WithRetention(-1ms)":        core.WithRetention(-time.Millisecond),
		"WithRetention(20.5ms)":      core.WithRetention(20*time.Millisecond + time.Millisecond/2),
		"WithRetention(87600h0m1s)":  core.WithRetention(10*365*24*time.Hour + time.Second),
		"WithFingerprint: 257 bytes": core.WithFingerprint(make([]byte, 257)),
		"WithFailurePolicy(2)":       core.WithFailurePolicy(2),
		"WithFailurePolicy(-1)":      core.WithFailurePolicy(-1),
		"WithMaxValue(0)":            core.WithMaxValue(0),
		"WithMaxValue(268435457)":    core.WithMaxValue(256<<20 + 1),
		"WithTTL(1ms)":               core.WithTTL(time.Millisecond),
		"WithFixedTTL(0s)":           core.WithFixedTTL(0),
		"WithWait(-1ns)":             core.WithWait(-1),
		"WithWait(5ns): 0 or at least 1ms is needed; is the unit missing": core.WithWait(5),
		"WithWait(999.999µs)": core.WithWait(time.Millisecond - 1),
		"WithMaxHold(30ns): 0 or at least 1ms is needed; is the unit missing": core.WithMaxHold(30),
		"WithMaxHold(-1ns)":                                core.WithMaxHold(-1),
		"WithReplicaAck(0, 1s)":                            core.WithReplicaAck(0, time.Second),
		"WithReplicaAck(1001, 1s)":                         core.WithReplicaAck(1001, time.Second),
		fmt.Sprintf("WithReplicaAck(%d, 1s)", math.MaxInt): core.WithReplicaAck(math.MaxInt, time.Second),
		"WithReplicaAck(1, 30s)":                           core.WithReplicaAck(1, 30*time.Second),
		"WithOwner":                                        core.WithOwner("me"),
		"WithOwner: 0 bytes":                               core.WithOwner(""),
		"WithMinHold is":                                   core.WithMinHold(time.Second),
	} {
		coretest.WantInvalid(t, seal.CheckOnceOptions(option), core.ErrInvalidOption, name)
		wantRefusals(t, locks.Once("name", option), core.ErrInvalidOption, name)
	}
	for name, reason := range map[string]string{
		"": "empty", strings.Repeat("x", 513): "513 bytes", "a\x00b": "NUL", "a{": "balanced", "{}a": "empty",
	} {
		wantRefusals(t, locks.Once(name), core.ErrInvalidName, reason)
	}
	wantRefusals(t, coretest.NewClient(t, rdb, core.WithPrefix("")).Once("holdfast:x"), core.ErrInvalidName, "reserved")
	if n := rdb.DBSize(context.Background()).Val(); n != 0 {
		t.Errorf("%d keys", n)
	}
}

func wantRefusals(t testing.TB, o *core.Once, kind error, names string) {
	t.Helper()
	ctx := context.Background()
	_, err := o.Begin(ctx)
	coretest.WantInvalid(t, err, kind, names)
	_, err = o.Do(ctx, coretest.Answers(nil, ""))
	coretest.WantInvalid(t, err, kind, names)
	_, err = o.Peek(ctx)
	coretest.WantInvalid(t, err, kind, names)
	coretest.WantInvalid(t, coretest.ForgetNow(ctx, o), kind, names)
	coretest.WantInvalid(t, coretest.ResolveNow(ctx, o, nil), kind, names)
}

// TestOnceLimits: what is just allowed.
func TestOnceLimits(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	print := bytes.Repeat([]byte{0xff, 0, '\r', '\n'}, 64)
	opts := []core.OnceOption{
		nil, core.WithRetention(10 * 365 * 24 * time.Hour), core.WithFingerprint(print), core.WithMaxValue(256 << 20),
		core.WithTTL(365 * 24 * time.Hour), core.WithMinHold(0),
	}
	if err := seal.CheckOnceOptions(opts...); err != nil {
		t.Error(err)
	}
	locks := coretest.NewClient(t, rdb)
	name := strings.Repeat("ä", 256)
	a := coretest.MustBegin(t, locks.Once(name, opts...))
	print[0] = 0 // the option has a copy
	if err := a.Complete(context.Background(), print); err != nil {
		t.Error(err)
	}
	r := coretest.MustPeek(t, locks.Once(name))
	if !bytes.Equal(r.Value, print) || r.Fingerprint[0] != 0xff || !bytes.Equal(r.Fingerprint[1:], print[1:]) ||
		r.Retention < 9*365*24*time.Hour {
		t.Errorf("%+v", r)
	}
}

// TestOnceDefaults: what is set for the client's locks applies to a Once as far as it has a meaning there.
func TestOnceDefaults(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	var waited atomic.Int64
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithWait(coretest.Within),
		core.WithOwner("me"), core.WithMinHold(time.Hour),
		core.WithHooks(core.Hooks{Wait: func(context.Context, core.Wait) { waited.Add(1) }}))
	a := coretest.MustBegin(t, locks.Once("name"))
	if r := coretest.MustPeek(t, locks.Once("name")); r.Lease > coretest.Long || r.Lease < coretest.Long-coretest.Within {
		t.Errorf("a lease of %v", r.Lease)
	}
	_, err := locks.Once("name").Begin(ctx) // another attempt, though the owner of locks is the same
	if coretest.WantErr(t, err, core.ErrInProgress); waited.Load() != 0 {
		t.Error("a Once without WithWait waits for as long as the locks of its client")
	}
	waiting := make(chan error, 1)
	go func() {
		next, err := locks.Once("name", core.WithWait(coretest.Long)).Begin(ctx)
		if err == nil {
			err = next.Release(ctx)
		}
		waiting <- err
	}()
	testkit.Eventually(t, coretest.Within, "a Once with WithWait to wait", func() bool { return waited.Load() == 1 })
	if err := a.Release(ctx); err != nil {
		t.Error(err)
	}
	if err := coretest.Receive(t, waiting); err != nil {
		t.Error(err)
	}
	coretest.MustBegin(t, locks.Once("name", core.WithTTL(time.Hour)))
	if r := coretest.MustPeek(t, locks.Once("name")); r.Lease < time.Hour-coretest.Within || r.Attempt != 3 {
		t.Errorf("%+v", r)
	}
	if _, err := core.New(rdb, core.WithReplicaAck(1, time.Second), core.WithTTL(time.Second)); err == nil {
		t.Error("accepted")
	}
	acked := coretest.NewClient(t, rdb, core.WithReplicaAck(1, 10*time.Second))
	wantRefusals(t, acked.Once("name", core.WithTTL(10*time.Second)), core.ErrInvalidOption, "WithReplicaAck")
}

// TestReasons: what is recorded of them is short and readable.
func TestReasons(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long))
	for given, want := range map[string]string{
		"":                              "",
		"it broke":                      "it broke",
		"a" + strings.Repeat("ä", 1000): "a" + strings.Repeat("ä", 511),
		strings.Repeat("x", 2000):       strings.Repeat("x", 1024),
		"half \xc3":                     "half ",
	} {
		once := locks.Once("name")
		if err := coretest.MustBegin(t, once).Hold(ctx, given); err != nil {
			t.Error(err)
		}
		_, err := once.Begin(ctx)
		var unknown *core.OutcomeUnknownError
		if !errors.As(err, &unknown) || unknown.Record.Reason != want || want != "" && !strings.HasSuffix(err.Error(), strconv.Quote(want)) {
			t.Errorf("%q is recorded as %v", given, err)
		}
		coretest.Forget(t, once)
	}
}

// TestTokenThatIsNone: what another program has written at the key of the last token keeps no caller out.
func TestTokenThatIsNone(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	for _, text := range []string{"", "abc"} {
		rdb.Set(context.Background(), "holdfast:token", text, 0)
		lease := coretest.MustLock(t, locks.Mutex("name"))
		coretest.Unlock(t, lease)
		rdb.Set(context.Background(), "holdfast:token", text, 0)
		a := coretest.MustBegin(t, locks.Once("name"))
		if lease.Token() <= 0 || a.Token() <= 0 {
			t.Errorf("tokens %d and %d", lease.Token(), a.Token())
		}
		if err := a.Release(context.Background()); err != nil {
			t.Error(err)
		}
		rdb.Del(context.Background(), coretest.RecordOf("name"))
	}
}
