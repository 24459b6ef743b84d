package once_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestWithdraw: an attempt that has not begun its work does not count, also if it has overtaken another one, which
// finds out. The waiters begin at once.
func TestWithdraw(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	begin := func() *core.Attempt {
		t.Helper()
		attempt, err := locks.Once("order", core.WithWait(time.Minute), core.WithTTL(time.Hour)).Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return attempt
	}
	first := begin()
	if err := seal.AttemptOf(first).Withdraw(ctx); err != nil || first.Number() != 1 {
		t.Fatalf("attempt %d, error %v", first.Number(), err)
	}
	if err := first.Complete(ctx, nil); !errors.Is(err, core.ErrNotHeld) {
		t.Errorf("completed after that: %v", err)
	}
	second := begin()
	if err := second.Release(ctx); err != nil || second.Number() != 1 {
		t.Fatalf("attempt %d, error %v; want 1 again", second.Number(), err)
	}
	third := begin()
	waiting := make(chan *core.Attempt)
	go func() { waiting <- begin() }()
	if err := seal.AttemptOf(third).Withdraw(ctx); err != nil || third.Number() != 2 {
		t.Fatalf("attempt %d, error %v; want 2", third.Number(), err)
	}
	if fourth := <-waiting; fourth.Number() != 2 || fourth.Token() <= third.Token() {
		t.Errorf("attempt %d with token %d, want 2 and one greater than %d", fourth.Number(), fourth.Token(), third.Token())
	}
}
