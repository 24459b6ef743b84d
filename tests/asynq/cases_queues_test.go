package asynq_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

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
		once: outcome{1, 1}, exclusive: outcome{2, 1}, baseline: outcome{2, 2},
	})
}

// TestOneIDInTwoQueues is case I: they are two tasks, but the heartbeat of a server that has both goes to one only. The
// other one is run again while it runs. To the guard they are two as well: each is done, once.
func TestOneIDInTwoQueues(t *testing.T) {
	play(t, story{
		about: "a",
		tell: func(s *stage) {
			both := func(p *process) { p.cfg.Queues = map[string]int{"a": 1, "b": 1} }
			s.handle = wonted
			var beaten atomic.Int32
			s.start(both, tapped(beats("b", &beaten)))
			for _, queue := range []string{"a", "b"} {
				s.enqueue(receipt(queue), asynq.TaskID("same"), asynq.Queue(queue))
				s.turnOf(queue, 1)
			}
			s.expire("a", "same")
			already := beaten.Load()
			testkit.Eventually(s.t, within, "a heartbeat", func() bool { return beaten.Load() > already })
			if !s.expired("a", "same") {
				s.t.Error("the heartbeat went to both")
			}
			s.start(both)
			s.again(2)
			s.gate.open()
			for _, queue := range []string{"a", "b"} {
				testkit.Eventually(s.t, within, "queue "+queue+" to be empty", func() bool {
					info, err := s.inspector.GetQueueInfo(queue)
					return err == nil && info.Size == 0
				})
			}
			s.effects.want(s.t, "b", 1, 1)
		},
		once: outcome{1, 1}, exclusive: outcome{1, 1}, baseline: outcome{2, 2},
	})
}

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
				once: outcome{1, 1}, baseline: outcome{2, 1},
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
		once: outcome{1, 1}, baseline: outcome{2, 1},
	})
}

// TestAggregatedTwice is case O: tasks of a group were made one task, but asynq could not delete them then. After two
// minutes they are back in the group, and as soon as another one joins it, they are made a task once more, with another
// ID. What it contains tells that the two are one.
func TestAggregatedTwice(t *testing.T) {
	play(t, story{
		key: asynqlock.ByPayload(), about: "a+b",
		tell: func(s *stage) {
			s.aggregateInVain("a", "b")
			s.reclaim(2)
			s.enqueue(receipt("c"), asynq.Group("group"))
			s.turnOf("c", 1)
			s.finish()
		},
		once: outcome{1, 1}, baseline: outcome{2, 1},
	})
}

// TestAggregatedWithOthers is case O when the task that is made then has other members than before, so that it is not
// the same. There the handler has to tell which of them it has seen, by a record for each.
func TestAggregatedWithOthers(t *testing.T) {
	play(t, story{
		about: "a",
		tell: func(s *stage) {
			s.handle = func(r *turn) error {
				for member := range strings.SplitSeq(r.thing, "+") {
					send := func(context.Context) ([]byte, error) {
						s.effects.begin(member)
						s.effects.end(member, true)
						return nil, nil
					}
					if !s.guarded() {
						_, _ = send(r)
					} else if _, err := s.locks.Once("receipt:"+member).Do(r, send); err != nil {
						return err
					}
				}
				return nil
			}
			s.aggregateInVain("a", "b")
			s.reclaim(3)
			s.enqueue(receipt("c"), asynq.Group("group"))
			s.turnOf("a+b+c", 1)
			s.finish()
			s.effects.want(s.t, "c", 1, 1)
		},
		once: outcome{1, 1}, baseline: outcome{2, 1},
	})
}

// aggregateInVain makes one task of the members of a group, which stay, and returns when it runs. Then nobody does that
// any more.
func (s *stage) aggregateInVain(members ...string) {
	s.t.Helper()
	for _, member := range members {
		s.enqueue(receipt(member), asynq.Group("group"))
	}
	kept := newGate()
	server := s.start(aggregate(len(members)), tapped(func(cmd redis.Cmder, send func() error) error {
		if isDeleteSet(cmd) {
			kept.open()
			return errors.New("connection reset by peer")
		}
		return send()
	}))
	s.awaitOpen(kept, "the members to be kept")
	s.turnOf(strings.Join(members, "+"), 1)
	server.Shutdown()
}

// aggregate makes one task of so many members of a group, or of those that have waited for a second.
func aggregate(members int) func(*process) {
	return func(p *process) {
		p.cfg.GroupGracePeriod, p.cfg.GroupMaxSize = time.Second, members
		p.cfg.GroupAggregator = asynq.GroupAggregatorFunc(func(_ string, members []*asynq.Task) *asynq.Task {
			var orders []string
			for _, member := range members {
				orders = append(orders, orderOf(member))
			}
			slices.Sort(orders)
			return receipt(strings.Join(orders, "+"))
		})
	}
}

// reclaim lets two minutes pass for what is being made one task, until the next server, which takes so many
// members, has put it back in its group.
func (s *stage) reclaim(members int) {
	s.t.Helper()
	const packs = "asynq:{default}:aggregation_sets"
	ctx, rdb := context.Background(), s.redis.Client()
	names := rdb.ZRange(ctx, packs, 0, -1).Val()
	if len(names) != 1 {
		s.t.Fatalf("%d packs", len(names))
	}
	for _, member := range rdb.ZRange(ctx, names[0], 0, -1).Val() {
		rdb.ZIncrBy(ctx, names[0], -120, member)
	}
	rdb.ZIncrBy(ctx, packs, -120, names[0])
	s.start(aggregate(members))
	testkit.Eventually(s.t, within, "the pack to be undone", func() bool { return rdb.ZCard(ctx, packs).Val() == 0 })
}
