package core_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// answering is a hook that answers scripts in place of Redis if answer returns something.
type answering struct {
	answer func(cmd string) (reply any, err error)
}

func (a answering) DialHook(next redis.DialHook) redis.DialHook { return next }

func (a answering) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if a.answers(cmd) {
			return cmd.Err()
		}
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook answers the scripts of a pipeline too: what is repeated in the background may share one with a call.
func (a answering) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		rest := slices.DeleteFunc(slices.Clone(cmds), a.answers)
		if len(rest) == 0 {
			return nil
		}
		return next(ctx, rest)
	}
}

// answers answers a command, and returns true, if it is a script that has an answer.
func (a answering) answers(cmd redis.Cmder) bool {
	script, ok := cmd.(interface{ SetVal(any) })
	if !ok || !strings.HasPrefix(cmd.Name(), "eval") {
		return false
	}
	reply, err := a.answer(cmd.Name())
	if err != nil {
		cmd.SetErr(err)
	} else if reply != nil {
		script.SetVal(reply)
	}
	return err != nil || reply != nil
}

// TestNoScriptBehindText: proxies and managed services send NOSCRIPT behind a text of their own. The script is then sent itself.
func TestNoScriptBehindText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"(error) NOSCRIPT No matching script. Please use EVAL.", "ERR NOSCRIPT No matching script.", "NOSCRIPT", "proxy error: NOSCRIPT",
	} {
		rdb := testkit.Start(t).Client()
		rdb.AddHook(answering{func(cmd string) (any, error) {
			if cmd == "evalsha" {
				return nil, errorReply(text)
			}
			return nil, nil
		}})
		locks := newClient(t, rdb)
		unlock(t, mustLock(t, locks.Mutex("name")))
		unlock(t, mustLock(t, locks.Fair("name")))
	}
}

// TestOneUnknownErrorInAWait: a proxy gives an error that no Redis gives, once. A waiting call goes on. One that does not wait
// returns it.
func TestOneUnknownErrorInAWait(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	odd := errorReply("ERR proxy: upstream connection was reset")
	for name, call := range map[string]func(*core.Client) error{
		"Mutex":     func(c *core.Client) error { _, err := c.Mutex("name").Lock(ctx); return err },
		"Fair":      func(c *core.Client) error { _, err := c.Fair("name").Lock(ctx); return err },
		"Semaphore": func(c *core.Client) error { _, err := c.Semaphore("name", 2).Lock(ctx); return err },
		"Once":      func(c *core.Client) error { _, err := c.Once("name", core.WithWait(within)).Begin(ctx); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := testkit.Start(t).Client()
			locks := newClient(t, rdb)
			failScripts(rdb, odd, 2)
			if err := call(locks); err != nil {
				t.Error(err)
			}
		})
	}
	rdb := testkit.Start(t).Client()
	locks := newClient(t, rdb)
	scripts := failScripts(rdb, odd, 1)
	_, err := locks.Mutex("name").TryLock(ctx)
	wantErr(t, err, odd)
	if errors.Is(err, core.ErrUnavailable) || scripts.sent.Load() != 1 {
		t.Errorf("%v after %d requests", err, scripts.sent.Load())
	}
}

// TestUnknownErrorsEndAWait: the errors do not end. All callers that wait get them, and it is no outage.
func TestUnknownErrorsEndAWait(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := newClient(t, rdb)
	odd := errorReply("ERR proxy: upstream connection was reset")
	scripts := failScripts(rdb, odd, always)
	var waiting []<-chan error
	for range 20 {
		waiting = append(waiting, lockLater(locks.Mutex("name")))
	}
	for _, done := range waiting {
		if err := receive(t, done); !errors.Is(err, odd) || errors.Is(err, core.ErrUnavailable) || errors.Is(err, core.ErrNotAcquired) {
			t.Errorf("Lock: %v", err)
		}
	}
	if scripts.sent.Load() < 4 {
		t.Errorf("%d requests", scripts.sent.Load())
	}
	scripts.left.Store(0)
}

// TestOnlyItsRepliesAreARelease: something answers a release that is no Redis. Unlock does not return nil, and the client sends
// the release again.
func TestOnlyItsRepliesAreARelease(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]any{"text": "OK", "list": []any{}, "number": int64(7), "negative": int64(-1), "big": int64(1) << 50} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := testkit.Start(t).Client()
			var odd atomic.Bool
			rdb.AddHook(answering{func(string) (any, error) {
				if odd.Load() {
					return reply, nil
				}
				return nil, nil
			}})
			locks := newClient(t, rdb)
			leases := map[string]*core.Lease{
				"Mutex": mustLock(t, locks.Mutex("a")), "Fair": mustLock(t, locks.Fair("b")), "Semaphore": mustLock(t, locks.Semaphore("c", 2)),
			}
			attempt, err := locks.Once("d").Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			odd.Store(true)
			for name, lease := range leases {
				err := lease.Unlock(t.Context())
				if err == nil || errors.Is(err, core.ErrNotHeld) || errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), "unexpected reply") {
					t.Errorf("Unlock of a %s: %v", name, err)
				}
			}
			if err := attempt.Complete(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "unexpected reply") {
				t.Errorf("Complete: %v", err)
			}
			if _, err := locks.Mutex("e").TryLock(t.Context()); err == nil && name != "number" && name != "big" { // which may be tokens
				t.Error("a lock was granted by a reply that grants nothing")
			}
			odd.Store(false)
			for _, key := range []string{"lock:a", "lock:b", "lock:c"} {
				gone(t, rdb, key)
			}
		})
	}
}
