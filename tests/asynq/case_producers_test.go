package asynq_test

import (
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestProducerTriesAgain is case M: the reply to a producer is lost, so it enqueues once more. These are two tasks,
// with two IDs, of which a business key or a header tells that they are one.
func TestProducerTriesAgain(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]asynqlock.KeyFunc{
		"payload": asynqlock.ByPayload("order"), "header": asynqlock.ByHeader("Idempotency-Key"),
	} {
		t.Run(name, func(t *testing.T) {
			play(t, story{
				key: key, tell: tryAgain,
				once: outcome{1, 1}, control: outcome{2, 1},
			})
		})
	}
}

func tryAgain(s *stage) {
	relay := s.redis.Relay()
	relay.LoseReplies(`redis.call("LPUSH", KEYS[2], ARGV[2])`, 1, testkit.Closed) // of asynq's script that enqueues
	producer := asynq.NewClientFromRedisClient(relay.Client(func(o *redis.Options) { o.MaxRetries = -1 }))
	task := asynq.NewTaskWithHeaders(kind, receipt(thing).Payload(), map[string]string{"Idempotency-Key": "order-7"})
	for tries := 1; ; tries++ {
		_, err := producer.Enqueue(task)
		if err == nil && tries == 1 {
			s.t.Fatal("no reply was lost")
		}
		if err == nil {
			break
		}
	}
	if n := relay.LostReplies(); n != 1 {
		s.t.Fatalf("%d replies were lost", n)
	}
	s.start()
	s.finish()
}

// TestSchedulers is case M: every replica of a service has a scheduler, so a periodic task is enqueued by each. A key
// for the period tells that they are one.
func TestSchedulers(t *testing.T) {
	const year = 365 * 24 * time.Hour // none begins while the test runs
	play(t, story{
		key: asynqlock.PerPeriod(asynqlock.ByType(), year),
		tell: func(s *stage) {
			for range 2 {
				enqueued := newGate()
				scheduler := asynq.NewScheduler(s.conn(), &asynq.SchedulerOpts{
					LogLevel:        asynq.FatalLevel,
					PostEnqueueFunc: func(*asynq.TaskInfo, error) { enqueued.open() },
				})
				if _, err := scheduler.Register("@every 1s", receipt(thing)); err != nil {
					s.t.Fatal(err)
				}
				if err := scheduler.Start(); err != nil {
					s.t.Fatal(err)
				}
				s.t.Cleanup(scheduler.Shutdown)
				s.awaitOpen(enqueued, "a period")
				scheduler.Shutdown()
			}
			s.start()
			s.finish()
		},
		once: outcome{1, 1}, control: outcome{2, 1},
	})
}
