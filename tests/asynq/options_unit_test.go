package asynq_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/asynqlock"
)

// TestDurationsWithoutUnit: the error of each option says what was probably meant by a number without a unit.
func TestDurationsWithoutUnit(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for option, of := range map[string]func(time.Duration) asynqlock.Option{
		"WithTTL": asynqlock.WithTTL, "WithWait": asynqlock.WithWait, "WithRetryIn": asynqlock.WithRetryIn, "WithMaxBusy": asynqlock.WithMaxBusy,
		"WithZombieGrace": asynqlock.WithZombieGrace, "WithCommitMargin": asynqlock.WithCommitMargin,
		"WithRetention": asynqlock.WithRetention, "WithFinishTimeout": asynqlock.WithFinishTimeout,
	} {
		_, err := asynqlock.NewOnce(d.locks, asynqlock.ByTaskID(), of(30))
		if err == nil || !strings.Contains(err.Error(), option+"(30ns)") || !strings.Contains(err.Error(), "did you mean 30*time.Second?") {
			t.Errorf("%s: %v", option, err)
		}
	}
}
