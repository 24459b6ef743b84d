package asynq_test

import (
	"errors"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestUniqueForTooShort is case L: a task was enqueued as unique, and takes longer than for that. Then its like is let
// in, with another ID.
func TestUniqueForTooShort(t *testing.T) {
	play(t, story{
		key: asynqlock.ByPayload(),
		tell: func(s *stage) {
			s.handle = wonted
			s.start()
			s.enqueue(receipt(thing), asynq.Unique(time.Second))
			s.turn(1)
			testkit.Eventually(s.t, within, "the task to be unique no more", func() bool {
				_, err := s.client.Enqueue(receipt(thing), asynq.Unique(time.Hour))
				if err != nil && !errors.Is(err, asynq.ErrDuplicateTask) {
					s.t.Fatal(err)
				}
				return err == nil
			})
			s.again(2)
			s.finish()
		},
		once: outcome{1, 1}, exclusive: outcome{2, 1}, control: outcome{2, 2},
	})
}
