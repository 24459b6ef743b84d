package asynq_test

import (
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
)

// TestRetryDelay: a deferred task has the delay of its error, and every other one that of the given function.
func TestRetryDelay(t *testing.T) {
	t.Parallel()
	minutes := asynqlock.RetryDelay(func(n int, _ error, _ *asynq.Task) time.Duration { return time.Duration(n) * time.Minute })
	if d := minutes(3, errOwn, receipt("7")); d != 3*time.Minute {
		t.Errorf("failed task: %v", d)
	}
	for name, delay := range map[string]asynq.RetryDelayFunc{"given": minutes, "nil": asynqlock.RetryDelay(nil)} {
		if d := delay(3, deferredBy(core.ErrNotAcquired), receipt("7")); d != 7*time.Second {
			t.Errorf("%s: deferred task: %v", name, d)
		}
	}
	if d := asynqlock.RetryDelay(nil)(2, errOwn, receipt("7")); d < 15*time.Second { // the minimum of asynq's own function
		t.Errorf("failed task without a function: %v", d)
	}
}
