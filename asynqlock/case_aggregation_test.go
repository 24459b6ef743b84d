package asynqlock_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// TestAggregatedTwice is case O: tasks of a group were made one task, but asynq could not delete them then. After two
// minutes they are back in the group, and as soon as another one joins it, they are made a task once more, with another ID.
// What it contains tells that the two are one.
func TestAggregatedTwice(t *testing.T) {
	play(t, story{
		key: asynqlock.ByPayload(), about: "a+b",
		tell: func(s *stage) {
			var kept atomic.Int32
			s.start(aggregate, tapped(func(cmd redis.Cmder, send func() error) error {
				if isDeleteSet(cmd) && kept.Add(1) == 1 {
					return errors.New("connection reset by peer")
				}
				return send()
			}))
			for _, member := range []string{"a", "b"} {
				s.enqueue(receipt(member), asynq.Group("group"))
			}
			redistest.Eventually(s.t, within, "the members to be kept", func() bool { return kept.Load() > 0 })
			s.turn(1)
			s.reclaim()
			s.enqueue(receipt("c"), asynq.Group("group"))
			s.turnOf("c", 1)
			s.finish()
			if n := kept.Load(); n < 2 {
				s.t.Errorf("the members were made a task %d times", n)
			}
		},
		once: outcome{1, 1}, control: outcome{2, 1},
	})
}

// aggregate makes one task of two members of a group, or of those that have waited for a second.
func aggregate(p *process) {
	p.cfg.GroupGracePeriod, p.cfg.GroupMaxSize = time.Second, 2
	p.cfg.GroupAggregator = asynq.GroupAggregatorFunc(func(_ string, members []*asynq.Task) *asynq.Task {
		var orders []string
		for _, member := range members {
			orders = append(orders, orderOf(member))
		}
		slices.Sort(orders)
		payload, _ := json.Marshal(map[string]string{"order": strings.Join(orders, "+")})
		return asynq.NewTask(kind, payload)
	})
}

// reclaim lets two minutes pass for what is being made one task, until the next server has put it back in its group.
func (s *stage) reclaim() {
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
	s.start(aggregate)
	redistest.Eventually(s.t, within, "the pack to be undone", func() bool { return rdb.ZCard(ctx, packs).Val() == 0 })
}
