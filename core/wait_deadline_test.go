package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestDeadlineNamesTheHolder: whether WithWait or the caller's context bounds a wait, the error names who holds the lock, of
// which process it is, and for how long. It is the context's error too.
func TestDeadlineNamesTheHolder(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	ours := newClient(t, rdb, core.WithTTL(long), core.WithInstance("web-1:7"))
	for kind, strategy := range exclusives(ours) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			lease := mustLock(t, strategy(kind))
			theirs := newClient(t, rdb, core.WithTTL(long), core.WithInstance("web-2:8"))
			strategy := exclusives(theirs)[kind]
			awaitInstance(t, func() error { _, err := strategy(kind).TryLock(t.Context()); return err })
			const wait = 50 * time.Millisecond
			for range 2 { // alone, and behind another waiter of this process
				short, cancel := context.WithTimeout(t.Context(), wait)
				_, ended := strategy(kind).Lock(short)
				cancel()
				cancelled, stop := context.WithCancelCause(t.Context())
				time.AfterFunc(wait, func() { stop(errors.New("the shop has closed")) })
				_, stopped := strategy(kind).Lock(cancelled)
				_, waited := strategy(kind).Lock(t.Context(), core.WithWait(wait))
				for what, err := range map[string]error{"deadline": ended, "cancel": stopped, "WithWait": waited} {
					var busy *core.NotAcquiredError
					if !errors.As(err, &busy) || busy.Holder != lease.Owner() || busy.Instance != "web-1:7" || busy.RetryAfter <= 0 ||
						!strings.Contains(err.Error(), "held by another owner of web-1:7, whose lease ends in") {
						t.Errorf("%s: %v (%+v)", what, err, busy)
					}
				}
				if !errors.Is(ended, context.DeadlineExceeded) || !strings.Contains(ended.Error(), "deadline exceeded") {
					t.Errorf("deadline: %v", ended)
				}
				if !errors.Is(stopped, context.Canceled) || !strings.Contains(stopped.Error(), "the shop has closed") {
					t.Errorf("cancel: %v", stopped)
				}
				go func() { _, _ = strategy(kind).Lock(context.Background()) }() // until the client is closed
				testkit.Eventually(t, within, "the other waiter", func() bool { return theirs.Stats().Waiting > 0 })
			}
		})
	}
	t.Run("Once", func(t *testing.T) {
		t.Parallel()
		mustBegin(t, ours.Once("once"))
		short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := ours.Once("once", core.WithWait(long)).Begin(short)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "with a lease of") || !strings.Contains(err.Error(), "web-1:7") {
			t.Error(err)
		}
	})
}
