package once_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// resolvable brings the record of a name into a state, and returns the last attempt, nil if there was none, with what
// Resolve has to say.
type resolvable struct {
	prepare func(t testing.TB, rdb *redis.Client, locks *core.Client, name string) *core.Attempt
	refused error
	ended   bool // by the attempt
	print   string
}

// resolvables are all states of a record.
var resolvables = map[string]resolvable{
	"nothing": {prepare: func(testing.TB, *redis.Client, *core.Client, string) *core.Attempt { return nil }, print: "own"},
	"running": {prepare: begun, refused: core.ErrInProgress},
	"abandoned": {prepare: func(t testing.TB, rdb *redis.Client, locks *core.Client, name string) *core.Attempt {
		a := begun(t, rdb, locks, name)
		coretest.Abandon(t, rdb, name)
		return a
	}, print: "first"},
	"abandoned, held": {prepare: func(t testing.TB, rdb *redis.Client, locks *core.Client, name string) *core.Attempt {
		a := coretest.MustBegin(t, holding(locks, name))
		coretest.Abandon(t, rdb, name)
		return a
	}, print: "own"},
	"abandoned, declared": {prepare: func(t testing.TB, rdb *redis.Client, locks *core.Client, name string) *core.Attempt {
		a := begun(t, rdb, locks, name)
		if err := a.Declare(context.Background(), core.StateCompleted); err != nil {
			t.Error(err)
		}
		coretest.Abandon(t, rdb, name)
		return a
	}, refused: core.ErrCompleted},
	"held": {prepare: func(t testing.TB, rdb *redis.Client, locks *core.Client, name string) *core.Attempt {
		a := begun(t, rdb, locks, name)
		if err := a.Hold(context.Background(), "who knows"); err != nil {
			t.Error(err)
		}
		return a
	}, ended: true, print: "first"},
	"released": {prepare: func(t testing.TB, rdb *redis.Client, locks *core.Client, name string) *core.Attempt {
		a := begun(t, rdb, locks, name)
		if err := a.Release(context.Background()); err != nil {
			t.Error(err)
		}
		return a
	}, ended: true, print: "own"},
	"completed": {prepare: func(t testing.TB, rdb *redis.Client, locks *core.Client, name string) *core.Attempt {
		a := begun(t, rdb, locks, name)
		if err := a.Complete(context.Background(), []byte("first word")); err != nil {
			t.Error(err)
		}
		return a
	}, refused: core.ErrCompleted, ended: true},
}

func begun(t testing.TB, _ *redis.Client, locks *core.Client, name string) *core.Attempt {
	t.Helper()
	return coretest.MustBegin(t, locks.Once(name, core.WithFingerprint([]byte("first")), core.WithNote("by host 1")))
}

// TestResolve in every state of the record. From then on the last attempt can say nothing any more.
func TestResolve(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	for was, test := range resolvables {
		if test.refused != nil {
			continue
		}
		for end, call := range map[string]func(*core.Attempt) error{
			"complete": func(a *core.Attempt) error { return a.Complete(ctx, []byte("late")) },
			"release":  func(a *core.Attempt) error { return a.Release(ctx) },
			"hold":     func(a *core.Attempt) error { return a.Hold(ctx, "late") },
		} {
			name := was + ", " + end
			zombie := test.prepare(t, rdb, locks, name)
			once := coretest.NewClient(t, rdb).Once(name, core.WithRetention(48*time.Hour), core.WithFingerprint([]byte("own")))
			if err := coretest.ResolveNow(ctx, once, []byte("value")); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			wantResolved(t, once, zombie, test.print)
			before := contents(t, rdb, name)
			for _, field := range []string{"deadline", "ttl", "outcome_on_expiry", "declaration", "reason"} {
				if value, ok := before[field]; ok {
					t.Errorf("%s: %s %q is left", name, field, value)
				}
			}
			if zombie != nil && !test.ended {
				coretest.WantErr(t, zombie.Declare(ctx, core.StateUnknown), core.ErrStale)
				err := call(zombie)
				coretest.WantErr(t, err, core.ErrStale)
				coretest.WantErr(t, err, core.ErrLeaseLost)
			}
			if after := contents(t, rdb, name); !maps.Equal(before, after) {
				t.Errorf("%s: %v has become %v", name, before, after)
			}
		}
	}
	wantExpiries(t, rdb)
}

// wantResolved checks a record of that attempt that was resolved with "value", and what it is for later callers.
func wantResolved(t testing.TB, o *core.Once, a *core.Attempt, print string) {
	t.Helper()
	ctx := context.Background()
	number, token := 0, int64(0)
	if a != nil {
		number, token = a.Number(), a.Token()
	}
	r := coretest.WantState(t, o, core.StateCompleted, number)
	if string(r.Value) != "value" || r.Omitted || r.Token != token || string(r.Fingerprint) != print || r.Ended.IsZero() ||
		r.Reason != "" || r.Lease != 0 || r.Retention > 48*time.Hour || r.Retention < 48*time.Hour-coretest.Within {
		t.Errorf("%s: %+v, want token %d and fingerprint %q", o.Key(), r, token, print)
	}
	var again *core.CompletedError
	if err := coretest.ResolveNow(ctx, o, []byte("second word")); !errors.As(err, &again) || string(again.Record.Value) != "value" {
		t.Errorf("%s: a second Resolve: %v", o.Key(), err)
	}
	if print == "own" {
		got, err := o.Do(ctx, coretest.Answers(nil, ""))
		if string(got.Value) != "value" || !got.Replayed || got.Attempt != number || err != nil {
			t.Errorf("%s: %+v, %v", o.Key(), got, err)
		}
	} else {
		_, err := o.Begin(ctx)
		coretest.WantErr(t, err, core.ErrFingerprintMismatch)
	}
}

// TestResolveIsRefused while an attempt runs, and after the first answer; neither is touched.
func TestResolveIsRefused(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	for was, test := range resolvables {
		if test.refused == nil {
			continue
		}
		a := test.prepare(t, rdb, locks, was)
		once := coretest.NewClient(t, rdb).Once(was, core.WithRetention(time.Hour), core.WithMaxValue(1))
		before, kept := contents(t, rdb, was), rdb.PTTL(ctx, coretest.RecordOf(was)).Val()
		err := coretest.ResolveNow(ctx, once, []byte("value"))
		coretest.WantErr(t, err, test.refused)
		var busy *core.InProgressError
		if errors.As(err, &busy) && (busy.Key != was || busy.RetryAfter > coretest.Long || busy.RetryAfter < coretest.Long-coretest.Within) {
			t.Errorf("%s: %+v", was, busy)
		}
		var done *core.CompletedError
		if errors.As(err, &done) && (done.Record.State != core.StateCompleted || done.Record.Token != a.Token()) {
			t.Errorf("%s: %+v", was, done)
		}
		if after := contents(t, rdb, was); !maps.Equal(before, after) {
			t.Errorf("%s: %v has become %v", was, before, after)
		}
		if left := rdb.PTTL(ctx, coretest.RecordOf(was)).Val(); left > kept || left < kept-coretest.Within {
			t.Errorf("%s: kept for %v, before for %v", was, left, kept)
		}
		if !test.ended {
			if err := a.Complete(ctx, []byte("its own")); err != nil {
				t.Errorf("%s: %v", was, err)
			}
		}
	}
}

// TestResolveOfAFollowedAttempt: another one has begun, so there is nothing to resolve; when its lease is over, its
// number and token stay.
func TestResolveOfAFollowedAttempt(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	once := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long)).Once("name",
		core.WithRetention(48*time.Hour), core.WithFingerprint([]byte("own")))
	coretest.MustBegin(t, once)
	coretest.Abandon(t, rdb, "name")
	second := coretest.MustBegin(t, once)
	coretest.WantErr(t, coretest.ResolveNow(ctx, once, nil), core.ErrInProgress)
	coretest.Abandon(t, rdb, "name")
	if err := coretest.ResolveNow(ctx, once, []byte("value")); err != nil {
		t.Error(err)
	}
	wantResolved(t, once, second, "own")
	coretest.Forget(t, once)
	if next := coretest.MustBegin(t, once); next.Number() != 1 || next.Token() <= second.Token() {
		t.Errorf("attempt %d, token %d after Forget", next.Number(), next.Token())
	}
}

// TestResolveWhileItRuns: the attempt believes in a lease of which Redis knows nothing any more, and loses it at its
// next renewal.
func TestResolveWhileItRuns(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	once := coretest.NewClient(t, rdb, core.WithTTL(2*time.Second)).Once("name")
	a := coretest.MustBegin(t, once)
	rdb.Del(ctx, coretest.RecordOf("name"))
	if err := coretest.ResolveNow(ctx, once, []byte("value")); err != nil {
		t.Error(err)
	}
	coretest.WaitFor(t, a.Context().Done(), "the attempt to be lost")
	coretest.WantErr(t, context.Cause(a.Context()), core.ErrLeaseLost)
	coretest.WantErr(t, a.Complete(ctx, []byte("late")), core.ErrStale)
	if r := coretest.WantState(t, once, core.StateCompleted, 0); string(r.Value) != "value" || r.Token != 0 || !r.Began.IsZero() {
		t.Errorf("%+v", r)
	}
}

// TestResolvedValues: nil is an empty value, and one that is too large is left out and told of.
func TestResolvedValues(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	for name, test := range map[string]struct {
		value   []byte
		omitted bool
	}{
		"nil": {nil, false}, "empty": {[]byte{}, false}, "largest": {bytes.Repeat([]byte{0xff, 0}, 4), false},
		"too large": {make([]byte, 9), true},
	} {
		once := locks.Once(name, core.WithMaxValue(8))
		err := coretest.ResolveNow(ctx, once, test.value)
		if test.omitted {
			coretest.WantErr(t, err, core.ErrValueTooLarge)
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		r := coretest.WantState(t, once, core.StateCompleted, 0)
		if r.Omitted != test.omitted || !r.Omitted && (r.Value == nil || !bytes.Equal(r.Value, test.value)) {
			t.Errorf("%s: %+v", name, r)
		}
		coretest.WantErr(t, coretest.ResolveNow(ctx, once, make([]byte, 9)), core.ErrCompleted)
	}
}

// turnstile is a hook of a Redis client whose scripts wait while it is locked, and which is locked only once all that
// were sent are answered. Other commands pass: a script waits for those with which its connection begins.
type turnstile struct{ sync.RWMutex }

func (t *turnstile) DialHook(next redis.DialHook) redis.DialHook { return next }

func (t *turnstile) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.HasPrefix(cmd.Name(), "eval") {
			t.RLock()
			defer t.RUnlock()
		}
		return next(ctx, cmd)
	}
}

func (t *turnstile) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if strings.HasPrefix(cmds[0].Name(), "eval") {
			t.RLock()
			defer t.RUnlock()
		}
		return next(ctx, cmds)
	}
}

// TestWaitersGetWhatWasResolved, all of them, with what the record says.
func TestWaitersGetWhatWasResolved(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb, theirs := server.Client(), server.Client()
	var waiters turnstile
	theirs.AddHook(&waiters)
	locks, waiter := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long)), coretest.NewClient(t, theirs)
	coretest.MustBegin(t, locks.Once("name"))
	done := make(chan error, 3)
	for range cap(done) {
		go func() {
			got, err := waiter.Once("name", core.WithWait(coretest.Within)).Do(ctx, coretest.Answers(nil, ""))
			if err == nil && (string(got.Value) != "value" || !got.Replayed || got.Attempt != 1) {
				err = fmt.Errorf("%+v", got)
			}
			done <- err
		}()
	}
	testkit.Eventually(t, coretest.Within, "somebody to listen", func() bool {
		return rdb.PubSubNumSub(ctx, "redisson_lock__channel:{lock:name}").
			Val()["redisson_lock__channel:{lock:name}"] > 0
	})
	waiters.Lock() // or one of them could begin what is abandoned
	coretest.Abandon(t, rdb, "name")
	if err := coretest.ResolveNow(ctx, locks.Once("name"), []byte("value")); err != nil {
		t.Error(err)
	}
	waiters.Unlock()
	for range cap(done) {
		if err := coretest.Receive(t, done); err != nil {
			t.Errorf("waiter: %v", err)
		}
	}
}

// TestResolveCounts in the group of the key, which has no say in it.
func TestResolveCounts(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	of := func(i int) *core.Once {
		return locks.Once(fmt.Sprintf("pay:{ada}:%d", i), core.WithQuota(1), core.WithRetention(time.Hour))
	}
	for i := range 2 {
		if err := coretest.ResolveNow(ctx, of(i), nil); err != nil {
			t.Errorf("Resolve of key %d: %v", i, err)
		}
	}
	_, err := of(2).Begin(ctx)
	coretest.WantErr(t, err, core.ErrTooManyKeys)
	records, err := locks.GroupRecords(ctx, "pay:{ada}")
	keys := make([]string, len(records))
	for i, r := range records {
		keys[i] = r.Key
	}
	if slices.Sort(keys); err != nil || !slices.Equal(keys, []string{"pay:{ada}:0", "pay:{ada}:1"}) {
		t.Errorf("the group has %q, %v", keys, err)
	}
	const group = "holdfast:group:{ada}:lock:"
	if left := rdb.PTTL(ctx, group).Val(); left > time.Hour || left < time.Hour-coretest.Within {
		t.Errorf("the group is kept for %v", left)
	}
	// A record whose place in the group has passed meanwhile has it again.
	a := coretest.MustBegin(t, locks.Once("pay:{ada}:3", core.WithGroup(), core.WithRetention(time.Hour)))
	rdb.ZAdd(ctx, group, redis.Z{Score: 1, Member: "holdfast:once=lock:pay:{ada}:3"})
	if err := a.Hold(ctx, ""); err != nil {
		t.Error(err)
	}
	if err := coretest.ResolveNow(ctx, of(3), nil); err != nil {
		t.Error(err)
	}
	score := rdb.ZScore(ctx, group, "holdfast:once=lock:pay:{ada}:3").Val()
	if left := time.Until(time.UnixMilli(int64(score) % (1 << 42))); left < time.Hour-coretest.Within || left > time.Hour+coretest.Within {
		t.Errorf("the record counts for %v", left)
	}
	coretest.Forget(t, of(0))
	coretest.Forget(t, of(1))
	coretest.Forget(t, of(3))
	coretest.MustBegin(t, of(2))
}

// TestResolveKeepsTheRetention: an operator need not know for how long the service keeps its records.
func TestResolveKeepsTheRetention(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	for name, row := range map[string]struct{ service, operator, least, most time.Duration }{
		"shorter": {720 * time.Hour, 24 * time.Hour, 719 * time.Hour, 720 * time.Hour},
		"longer":  {24 * time.Hour, 720 * time.Hour, 719 * time.Hour, 720 * time.Hour},
	} {
		attempt := coretest.MustBegin(t, locks.Once(name, core.WithRetention(row.service)))
		if err := attempt.Hold(ctx, "who knows"); err != nil {
			t.Fatal(err)
		}
		if err := coretest.ResolveNow(ctx, locks.Once(name, core.WithRetention(row.operator)), nil); err != nil {
			t.Fatal(err)
		}
		if left := rdb.PTTL(ctx, "holdfast:once:{lock:"+name+"}").Val(); left < row.least || left > row.most {
			t.Errorf("%s: kept for %v", name, left)
		}
	}
}
