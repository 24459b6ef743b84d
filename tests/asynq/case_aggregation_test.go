package asynq_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

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
		once: outcome{1, 1}, control: outcome{2, 1},
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
		once: outcome{1, 1}, control: outcome{2, 1},
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
