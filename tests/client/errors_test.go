package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestErrorTypes: each type of error is its sentinel for errors.Is, and its text names what the caller asked for.
func TestErrorTypes(t *testing.T) {
	t.Parallel()
	record := core.Record{Key: "order:42", Attempt: 3, Reason: "bank timed out"}
	for name, test := range map[string]struct {
		err  error
		is   error
		says []string
	}{
		"not acquired":    {&core.NotAcquiredError{Name: "order:42", RetryAfter: time.Second}, core.ErrNotAcquired, []string{`"order:42"`, "1s"}},
		"in progress":     {&core.InProgressError{Key: "order:42", RetryAfter: time.Second}, core.ErrInProgress, []string{`"order:42"`, "1s"}},
		"completed":       {&core.CompletedError{Record: record}, core.ErrCompleted, []string{`"order:42"`, "attempt 3"}},
		"outcome unknown": {&core.OutcomeUnknownError{Record: record}, core.ErrOutcomeUnknown, []string{`"order:42"`, "attempt 3", `"bank timed out"`}},
		"too many keys":   {&core.TooManyKeysError{Key: "order:42", RetryAfter: time.Second}, core.ErrTooManyKeys, []string{`"order:42"`, "another record", "1s"}},
		"too early":       {&core.OutsideWindowError{Key: "order:42", Early: true}, core.ErrOutsideWindow, []string{`"order:42"`, "early"}},
		"too late":        {&core.OutsideWindowError{Key: "order:42"}, core.ErrOutsideWindow, []string{`"order:42"`, "late"}},
	} {
		if !errors.Is(test.err, test.is) || errors.Is(test.err, core.ErrClosed) {
			t.Errorf("%s: %v is not only %v", name, test.err, test.is)
		}
		for _, want := range test.says {
			if !strings.Contains(test.err.Error(), want) {
				t.Errorf("%s: %q does not say %q", name, test.err, want)
			}
		}
	}
}

// TestErrorsTellOnce provokes errors that wrap others: each is one line, has the prefix once, and says what it is to say.
func TestErrorsTellOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server, secured := testkit.Start(t), testkit.Start(t)
	if err := secured.Client().Do(ctx, "ACL", "SETUSER", "default", "on", ">secret").Err(); err != nil {
		t.Fatal(err)
	}
	stranger := coretest.NewClient(t, redis.NewClient(&redis.Options{
		Network: secured.Options().Network, Addr: secured.Options().Addr, Protocol: 2, DisableIdentity: true,
	}), core.WithLogger(nil))
	down := coretest.NewClient(t, server.Client(func(o *redis.Options) { o.Addr += ".none" }), core.WithLogger(nil))
	locks := coretest.NewClient(t, server.Client(), core.WithTTL(coretest.Long), core.WithInstance("web-1:7"))
	coretest.MustLock(t, locks.Mutex("held"))
	coretest.MustBegin(t, locks.Once("held"))
	ended, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	for name, c := range map[string]struct {
		call func() error
		says []string
		is   error
	}{
		"TryLock": {func() error { _, err := locks.Mutex("held").TryLock(ctx); return err }, []string{
			`"held"`, "held by another owner of web-1:7, whose lease ends in", "unless it is renewed",
		}, core.ErrNotAcquired},
		"Lock":         {func() error { _, err := locks.Mutex("held").Lock(ended); return err }, []string{`"held"`, "deadline"}, core.ErrNotAcquired},
		"Begin":        {func() error { _, err := locks.Once("held").Begin(ctx); return err }, []string{`"held"`, "in progress on web-1:7"}, core.ErrInProgress},
		"outage":       {func() error { _, err := down.Mutex("a").TryLock(ctx); return err }, []string{`"a"`, "no answer"}, core.ErrUnavailable},
		"outage, once": {func() error { _, err := down.Once("a").Begin(ctx); return err }, []string{`"a"`, "no answer"}, core.ErrUnavailable},
		"outage, peek": {func() error { _, err := down.Once("a").Peek(ctx); return err }, []string{`"a"`, "no answer"}, core.ErrUnavailable},
		"outage, lock": {func() error { _, err := down.Mutex("a").Lock(ended); return err }, []string{`"a"`}, core.ErrNotAcquired},
		"no password": {func() error { _, err := stranger.Mutex("a").TryLock(ctx); return err }, []string{
			`"a"`, "NOAUTH", "password",
		}, core.ErrPermission},
		"no password, inspect": {func() error { _, err := stranger.Inspect(ctx, "a"); return err }, []string{"NOAUTH"}, core.ErrPermission},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.call()
			coretest.WantErr(t, err, c.is)
			if err == nil {
				return
			}
			text := err.Error()
			if strings.Count(text, "holdfast: ") != 1 || !strings.HasPrefix(text, "holdfast: ") || strings.Contains(text, "\n") {
				t.Errorf("%q", text)
			}
			for _, want := range c.says {
				if !strings.Contains(text, want) {
					t.Errorf("%q does not say %q", text, want)
				}
			}
		})
	}
}

// TestErrorsTellTheReply: what a server has answered is not called no answer, and is ErrUnavailable all the same. A call
// whose context ends between two such answers tells them too. The calls come one after another, because the lease cannot
// be renewed, and would expire while parallel tests wait for their turn.
func TestErrorsTellTheReply(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb := server.Client()
	locks := coretest.NewClient(t, server.Client(), core.WithLogger(nil), core.WithTTL(coretest.Long))
	lease, attempt := coretest.MustLock(t, locks.Mutex("held")), coretest.MustBegin(t, locks.Once("held"))
	if err := rdb.ConfigSet(ctx, "min-replicas-to-write", "1").Err(); err != nil {
		t.Fatal(err)
	}
	multi := core.Multi(locks.Mutex("c"), locks.Mutex("d"))
	for name, call := range map[string]func() error{
		"TryLock":        func() error { _, err := locks.Mutex("a").TryLock(ctx); return err },
		"Lock":           func() error { _, err := locks.Mutex("a").Lock(endedWhenRefused(t, rdb)); return err },
		"Multi, TryLock": func() error { _, err := multi.TryLock(ctx); return err },
		"Multi, Lock":    func() error { _, err := multi.Lock(endedWhenRefused(t, rdb)); return err },
		"Begin":          func() error { _, err := locks.Once("a").Begin(ctx); return err },
		"Begin, wait": func() error {
			_, err := locks.Once("a", core.WithWait(coretest.Long)).Begin(endedWhenRefused(t, rdb))
			return err
		},
		"Unlock":   func() error { return lease.Unlock(ctx) },
		"Complete": func() error { return attempt.Complete(ctx, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			err := call()
			coretest.WantErr(t, err, core.ErrUnavailable)
			var reply redis.Error
			if err == nil || !errors.As(err, &reply) {
				t.Fatalf("%v does not wrap the reply", err)
			}
			text := err.Error()
			if !strings.Contains(text, "Redis cannot serve this now: NOREPLICAS") || strings.Contains(text, "no answer") {
				t.Errorf("%q", text)
			}
		})
	}
}

// endedWhenRefused returns a context that ends when the server has refused another command, after one or two of the call,
// because it has no replicas. Redis counts a refusal inside a script once or twice. The client repeats a command only after
// the answer, so the first refusal has reached the client by then.
func endedWhenRefused(t *testing.T, rdb *redis.Client) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), coretest.Within)
	t.Cleanup(cancel)
	before := refusals(ctx, rdb)
	go func() {
		defer cancel()
		for ctx.Err() == nil && refusals(ctx, rdb) < before+3 {
			time.Sleep(time.Millisecond)
		}
	}()
	return ctx
}

// refusals returns how many commands the server has refused because it has no replicas.
func refusals(ctx context.Context, rdb *redis.Client) (n int) {
	_, after, _ := strings.Cut(rdb.Info(ctx, "errorstats").Val(), "errorstat_NOREPLICAS:count=")
	_, _ = fmt.Sscanf(after, "%d", &n)
	return n
}

// TestCloseReportsFailures on a server that is frozen.
func TestCloseReportsFailures(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks, err := core.New(server.Client(), core.WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	coretest.MustLock(t, locks.Mutex("name"))
	server.Pause()
	err = locks.Close()
	server.Resume()
	coretest.WantErr(t, err, core.ErrUnavailable)
	if err == nil || !strings.Contains(err.Error(), `"name"`) || !strings.HasPrefix(err.Error(), "holdfast: close: ") {
		t.Errorf("Close = %v", err)
	}
}

// TestLossHasItsCause where Redis or the clock does.
func TestLossHasItsCause(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		opts  []core.LockOption
		cause string
		lose  func(t *testing.T, rdb *redis.Client, locks *core.Client)
	}{
		"Fixed": {[]core.LockOption{core.WithFixedTTL(100 * time.Millisecond)}, "its fixed TTL expired", nil},
		"Gone": {[]core.LockOption{core.WithTTL(3 * time.Second)}, "not in Redis any more", func(_ *testing.T, rdb *redis.Client, _ *core.Client) {
			rdb.Del(ctx, "lock:name")
		}},
		"Replaced": {
			[]core.LockOption{core.WithTTL(3 * time.Second)},
			"taken over by another owner",
			func(t *testing.T, rdb *redis.Client, locks *core.Client) {
				rdb.Del(ctx, "lock:name")
				coretest.MustLock(t, locks.Mutex("name"), core.WithTTL(coretest.Long))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := testkit.Start(t).Client()
			locks := coretest.NewClient(t, rdb, core.WithLogger(nil))
			lease := coretest.MustLock(t, locks.Mutex("name"), c.opts...)
			if c.lose != nil {
				c.lose(t, rdb, locks)
			}
			coretest.WaitFor(t, lease.Done(), "the loss")
			cause := context.Cause(lease.Context())
			if !errors.Is(cause, core.ErrLeaseLost) || !strings.Contains(cause.Error(), c.cause) {
				t.Errorf("lost by %v, want %q", cause, c.cause)
			}
		})
	}
}
