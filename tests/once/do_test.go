package once_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

func TestOnceReplays(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	first, second := coretest.NewClient(t, rdb), coretest.NewClient(t, rdb)
	var ran atomic.Int64
	for i, client := range []*core.Client{first, first, second} {
		got, err := client.Once("order:1").Do(ctx, coretest.Answers(&ran, "paid"))
		if err != nil || string(got.Value) != "paid" || got.Replayed != (i > 0) || got.Attempt != 1 || got.Omitted {
			t.Errorf("call %d: %+v, %v", i+1, got, err)
		}
	}
	if n := ran.Load(); n != 1 {
		t.Errorf("ran %d times", n)
	}
	r := coretest.MustPeek(t, second.Once("order:1"))
	if r.State != core.StateCompleted || string(r.Value) != "paid" || r.Key != "order:1" || r.Token <= 0 ||
		r.Began.IsZero() || r.Ended.Before(r.Began) || r.Lease != 0 || r.Retention > 24*time.Hour ||
		r.Retention < 23*time.Hour {
		t.Errorf("record %+v", r)
	}
	if n := rdb.Exists(ctx, "lock:order:1").Val(); n != 0 {
		t.Error("a Once has made a lock of its name")
	}
}

// TestOnceOfMany: of many callers in several clients one runs, and those that wait get its value.
func TestOnceOfMany(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	clients := []*core.Client{coretest.NewClient(t, rdb), coretest.NewClient(t, rdb), coretest.NewClient(t, rdb)}
	var ran, replayed, refused atomic.Int64
	var all sync.WaitGroup
	begin := make(chan struct{})
	for i := range 60 {
		opts := []core.OnceOption{core.WithTTL(coretest.Long)}
		if i%2 == 0 {
			opts = append(opts, core.WithWait(coretest.Within))
		}
		all.Go(func() {
			got, err := clients[i%3].Once("name", opts...).Do(context.Background(),
				func(context.Context) ([]byte, error) {
					ran.Add(1)
					<-begin
					return []byte("value"), nil
				})
			switch {
			case errors.Is(err, core.ErrInProgress):
				if refused.Add(1); i%2 == 0 {
					t.Errorf("one that waits was refused: %v", err)
				}
			case err != nil || string(got.Value) != "value":
				t.Errorf("%+v, %v", got, err)
			case got.Replayed:
				replayed.Add(1)
			}
		})
	}
	testkit.Eventually(t, coretest.Within, "those who do not wait to be refused", func() bool { return refused.Load() >= 29 })
	close(begin)
	all.Wait()
	if ran.Load() != 1 || replayed.Load()+refused.Load() != 59 {
		t.Errorf("ran %d, replayed %d, refused %d", ran.Load(), replayed.Load(), refused.Load())
	}
}

func TestOnceInProgress(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long))
	once := locks.Once("name")
	a := coretest.MustBegin(t, once)
	_, err := once.Begin(ctx)
	coretest.WantErr(t, err, core.ErrInProgress)
	var busy *core.InProgressError
	if !errors.As(err, &busy) || busy.RetryAfter <= coretest.Long-coretest.Within || busy.RetryAfter > coretest.Long || busy.Key != "name" {
		t.Errorf("error %v", err)
	}
	if errors.Is(err, core.ErrNotAcquired) {
		t.Error("it is not about a lock")
	}
	r := coretest.MustPeek(t, once)
	if r.State != core.StateRunning || r.Lease <= coretest.Long-coretest.Within || r.Token != a.Token() || !r.Ended.IsZero() {
		t.Errorf("record %+v", r)
	}
	// The run would wait for itself.
	_, err = coretest.NewClient(t, testkit.Start(t).Client()).Once("name").Begin(a.Context())
	if err != nil {
		t.Errorf("another Redis: %v", err)
	}
	waiting, cancel := context.WithTimeout(ctx, coretest.Within)
	defer cancel()
	_, err = locks.Once("name", core.WithWait(time.Hour)).Begin(a.Context())
	if coretest.WantErr(t, err, core.ErrInProgress); waiting.Err() != nil {
		t.Error("it has waited for itself")
	}
	if err := a.Complete(ctx, nil); err != nil {
		t.Fatal(err)
	}
	coretest.WantErr(t, context.Cause(a.Context()), core.ErrNotHeld)
	for _, again := range []error{a.Complete(ctx, nil), a.Release(ctx), a.Hold(ctx, ""), a.Declare(ctx, core.StateNone)} {
		coretest.WantErr(t, again, core.ErrNotHeld)
	}
	_, err = once.Begin(ctx)
	coretest.WantErr(t, err, core.ErrCompleted)
	var done *core.CompletedError
	if !errors.As(err, &done) || done.Record.Attempt != 1 || done.Record.Value == nil || done.Record.Omitted {
		t.Errorf("error %v with %+v", err, done)
	}
}

func TestFailurePolicies(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	failure := errors.New("no")
	for _, end := range []string{"error", "panic", "exit"} {
		retry := locks.Once("retry:" + end)
		runFailing(t, retry, end, failure)
		if r := coretest.MustPeek(t, retry); r.State != core.StateNone || r.Attempt != 1 || r.Token != 0 {
			t.Errorf("%s: after a failure the record is %+v", end, r)
		}
		if got, err := retry.Do(ctx, coretest.Answers(new(atomic.Int64), "ok")); err != nil || got.Attempt != 2 || got.Replayed {
			t.Errorf("%s: the second attempt: %+v, %v", end, got, err)
		}
		hold := locks.Once("hold:"+end, core.WithFailurePolicy(core.HoldFailures))
		runFailing(t, hold, end, failure)
		if _, err := hold.Do(ctx, coretest.Answers(nil, "")); !errors.Is(err, core.ErrOutcomeUnknown) {
			t.Errorf("%s: after a held failure: %v", end, err)
		}
		_, err := locks.Once("hold:" + end).Begin(ctx) // also with another policy
		var unknown *core.OutcomeUnknownError
		if !errors.As(err, &unknown) || unknown.Record.State != core.StateUnknown || unknown.Record.Reason == "" {
			t.Errorf("%s: %v", end, err)
		}
		if err := coretest.ForgetNow(ctx, hold); err != nil {
			t.Error(err)
		}
		if got, err := hold.Do(ctx, coretest.Answers(new(atomic.Int64), "ok")); err != nil || got.Attempt != 1 {
			t.Errorf("%s: after Forget: %+v, %v", end, got, err)
		}
	}
}

// runFailing runs something that ends in the given way, and checks that it is passed on.
func runFailing(t *testing.T, once *core.Once, end string, failure error) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); (p != nil) != (end == "panic") {
				t.Errorf("%s: recovered %v", end, p)
			}
		}()
		_, err := once.Do(context.Background(), func(context.Context) ([]byte, error) {
			switch end {
			case "panic":
				panic("no")
			case "exit":
				runtime.Goexit()
			}
			return nil, failure
		})
		if !errors.Is(err, failure) {
			t.Errorf("%s: Do returned %v", end, err)
		}
	}()
	<-done
}

func TestFingerprints(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long))
	of := func(print string) *core.Once { return locks.Once("name", core.WithFingerprint([]byte(print))) }
	a := coretest.MustBegin(t, of("a"))
	mismatch := func(when string) {
		t.Helper()
		before := coretest.MustPeek(t, of("a"))
		if _, err := of("b").Begin(ctx); !errors.Is(err, core.ErrFingerprintMismatch) {
			t.Errorf("%s: %v", when, err)
		}
		after := coretest.MustPeek(t, of("a"))
		before.Lease, before.Retention, after.Lease, after.Retention = 0, 0, 0, 0
		if string(after.Fingerprint) != "a" || string(after.Value) != string(before.Value) || after.Token != before.Token ||
			after.State != before.State {
			t.Errorf("%s: a mismatch has changed %+v to %+v", when, before, after)
		}
	}
	mismatch("while it runs")
	if err := a.Complete(ctx, []byte("value")); err != nil {
		t.Fatal(err)
	}
	mismatch("when it is completed")
	for _, print := range []string{"a", ""} {
		if got, err := of(print).Do(ctx, coretest.Answers(nil, "")); err != nil || string(got.Value) != "value" {
			t.Errorf("fingerprint %q: %+v, %v", print, got, err)
		}
	}
	// What was released has no fingerprint, and what was taken over has the fingerprint of the attempt that took it over.
	if err := coretest.MustBegin(t, locks.Once("released", core.WithFingerprint([]byte("a")))).Release(ctx); err != nil {
		t.Fatal(err)
	}
	b := coretest.MustBegin(t, locks.Once("released", core.WithFingerprint([]byte("b"))))
	if r := coretest.MustPeek(t, locks.Once("released")); string(r.Fingerprint) != "b" || r.Attempt != 2 {
		t.Errorf("record %+v", r)
	}
	if err := b.Complete(ctx, nil); err != nil {
		t.Fatal(err)
	}
}

func TestLargeValues(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	largest := []byte(strings.Repeat("x", 1<<20))
	got, err := locks.Once("fits").Do(ctx, func(context.Context) ([]byte, error) { return largest, nil })
	if err != nil || len(got.Value) != 1<<20 {
		t.Errorf("1 MiB: %d bytes, %v", len(got.Value), err)
	}
	if got, err := locks.Once("fits").Do(ctx, coretest.Answers(nil, "")); err != nil || !slices.Equal(got.Value, largest) {
		t.Errorf("1 MiB replayed: %d bytes, %v", len(got.Value), err)
	}
	for _, opts := range [][]core.OnceOption{nil, {core.WithMaxValue(1)}} {
		once := locks.Once("larger", opts...)
		got, err = once.Do(ctx, func(context.Context) ([]byte, error) { return append(largest, 'x'), nil })
		if coretest.WantErr(t, err, core.ErrValueTooLarge); len(got.Value) != 1<<20+1 || got.Replayed {
			t.Errorf("more than 1 MiB: %d bytes", len(got.Value))
		}
		got, err = once.Do(ctx, coretest.Answers(nil, ""))
		if err != nil || !got.Replayed || !got.Omitted || got.Value != nil {
			t.Errorf("replayed: %+v, %v", got, err)
		}
		if err := coretest.ForgetNow(ctx, once); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTokensOfAttempts(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb)
	var last int64
	grows := func(what string, token int64) {
		t.Helper()
		if token <= last {
			t.Errorf("%s: token %d after %d", what, token, last)
		}
		last = token
	}
	once := locks.Once("name")
	for range 3 {
		a := coretest.MustBegin(t, once)
		grows("attempt", a.Token())
		if token, ok := core.TokenFrom(a.Context()); !ok || token != a.Token() {
			t.Errorf("TokenFrom: %d, %v", token, ok)
		}
		if err := a.Release(ctx); err != nil {
			t.Fatal(err)
		}
		lease := coretest.MustLock(t, locks.Mutex("name")) // a lock of the name draws from the same tokens
		grows("lock", lease.Token())
		coretest.Unlock(t, lease)
	}
	// As if the server's clock had been an hour ahead until now.
	ahead := time.Now().Add(time.Hour).UnixMicro()
	rdb.Set(ctx, "holdfast:token", ahead, time.Hour)
	last = ahead
	a := coretest.MustBegin(t, once)
	grows("after the clock was set back", a.Token())
	rdb.Del(ctx, "holdfast:token")
	rdb.HSet(ctx, "holdfast:once:{lock:name}", "deadline", 0)
	grows("without remembered token", coretest.MustBegin(t, once).Token())
	rdb.FlushAll(ctx)
	last = time.Now().Add(-time.Minute).UnixMicro()
	grows("after FLUSHALL", coretest.MustBegin(t, once).Token())
}
