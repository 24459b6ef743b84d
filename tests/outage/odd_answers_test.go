package outage_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestNoScriptBehindText: proxies and managed services send NOSCRIPT behind a text of their own. The script is then sent itself.
func TestNoScriptBehindText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"(error) NOSCRIPT No matching script. Please use EVAL.", "ERR NOSCRIPT No matching script.", "NOSCRIPT", "proxy error: NOSCRIPT",
	} {
		rdb := testkit.Start(t).Client()
		rdb.AddHook(coretest.Answering{Answer: func(cmd string) (any, error) {
			if cmd == "evalsha" {
				return nil, coretest.ErrorReply(text)
			}
			return nil, nil
		}})
		locks := coretest.NewClient(t, rdb)
		coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("name")))
		coretest.Unlock(t, coretest.MustLock(t, locks.Fair("name")))
	}
}

// TestOneUnknownErrorInAWait: a proxy gives an error that no Redis gives, once. A waiting call continues. One that does not wait
// returns it.
func TestOneUnknownErrorInAWait(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	odd := coretest.ErrorReply("ERR proxy: upstream connection was reset")
	for name, call := range map[string]func(*core.Client) error{
		"Mutex":     func(c *core.Client) error { _, err := c.Mutex("name").Lock(ctx); return err },
		"Fair":      func(c *core.Client) error { _, err := c.Fair("name").Lock(ctx); return err },
		"Semaphore": func(c *core.Client) error { _, err := c.Semaphore("name", 2).Lock(ctx); return err },
		"Once": func(c *core.Client) error {
			_, err := c.Once("name", core.WithWait(coretest.Within)).Begin(ctx)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := testkit.Start(t).Client()
			locks := coretest.NewClient(t, rdb)
			coretest.FailScripts(rdb, odd, 2)
			if err := call(locks); err != nil {
				t.Error(err)
			}
		})
	}
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb)
	coretest.FailScripts(rdb, odd, 1)
	_, err := locks.Mutex("name").TryLock(ctx) // a second request would be granted
	coretest.WantErr(t, err, odd)
	if errors.Is(err, core.ErrUnavailable) {
		t.Error(err)
	}
}

// TestUnknownErrorsEndAWait: the errors do not end. All callers that wait get them, and it is no outage.
func TestUnknownErrorsEndAWait(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb)
	odd := coretest.ErrorReply("ERR proxy: upstream connection was reset")
	scripts := coretest.FailScripts(rdb, odd, coretest.Always)
	var waiting []<-chan error
	for range 20 {
		waiting = append(waiting, coretest.LockLater(locks.Mutex("name")))
	}
	for _, done := range waiting {
		if err := coretest.Receive(t, done); !errors.Is(err, odd) || errors.Is(err, core.ErrUnavailable) || errors.Is(err, core.ErrNotAcquired) {
			t.Errorf("Lock: %v", err)
		}
	}
	if scripts.Sent.Load() < 4 {
		t.Errorf("%d requests", scripts.Sent.Load())
	}
	scripts.Left.Store(0)
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
			rdb.AddHook(coretest.Answering{Answer: func(string) (any, error) {
				if odd.Load() {
					return reply, nil
				}
				return nil, nil
			}})
			locks := coretest.NewClient(t, rdb)
			leases := map[string]*core.Lease{
				"Mutex": coretest.MustLock(t, locks.Mutex("a")), "Fair": coretest.MustLock(t, locks.Fair("b")), "Semaphore": coretest.MustLock(t, locks.Semaphore("c", 2)),
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
				coretest.Gone(t, rdb, key)
			}
		})
	}
}
