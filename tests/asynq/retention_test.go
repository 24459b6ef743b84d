package asynq_test

import (
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
)

// TestRetention: the record of a task that has run is kept as long as the option says, and for a day without it.
func TestRetention(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	key := asynqlock.ByPayload("order")
	for order, test := range map[string]struct {
		opts []asynqlock.Option
		want time.Duration
	}{
		"7": {nil, 24 * time.Hour},
		"8": {[]asynqlock.Option{asynqlock.WithRetention(2 * time.Hour)}, 2 * time.Hour},
	} {
		task := receipt(order)
		info := delivery(order, ofKind, func(i *asynq.TaskInfo) { i.Payload = task.Payload() })
		wantNil(t, d.deliver(info, task, nothing, asynqlock.Once(d.locks, key, test.opts...)))
		record, err := asynqlock.Peek(t.Context(), d.locks, key, info)
		if err != nil || record.Retention > test.want || record.Retention < test.want-within {
			t.Errorf("order %s: kept for %v, error %v, want %v", order, record.Retention, err, test.want)
		}
	}
}
