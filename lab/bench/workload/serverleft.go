package workload

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/lab/bench/measure"
)

// state is what a server has, and has used.
type state struct {
	bytes, keys float64
	cpu         time.Duration
}

// left measures what many pairs leave in a server: at once, and later, when keys with a short TTL have expired. Each shape
// has a server of its own, so that all expire at the same time.
func (s *ServerCost) left(ctx context.Context) error {
	s.logf("left: %d pairs of %d shapes, and then %v", s.Left, len(s.Shapes), s.Later)
	var senders []*sender
	defer func() {
		for _, sender := range senders {
			_ = sender.rdb.Close() // nothing is in flight
		}
	}()
	before, after := make([]state, len(s.Shapes)), make([]state, len(s.Shapes))
	for i, of := range s.Shapes {
		sender, err := connect(ctx, s.Servers[1+i].Options(), of)
		if err != nil {
			return err
		}
		senders = append(senders, sender)
		if before[i], after[i], err = sender.leave(ctx, s.Left); err != nil {
			return fmt.Errorf("%s: %w", of.Name, err)
		}
		s.addLeft(sender, "", before[i], after[i])
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(s.Later):
	}
	for i, sender := range senders {
		later, err := stateOf(ctx, sender.rdb)
		if err != nil {
			return fmt.Errorf("%s: %w", sender.Name, err)
		}
		s.addLeft(sender, " later", before[i], later)
		s.add(WorkLeft, sender, "expiry us", perPair(later.cpu-after[i].cpu, s.Left))
		s.add(WorkLeft, sender, "pairs", float64(s.Left))
		s.add(WorkLeft, sender, "seconds", s.Later.Seconds())
	}
	return nil
}

// leave locks and unlocks names, as many at a time as one pipeline has.
func (s *sender) leave(ctx context.Context, pairs int) (before, after state, err error) {
	holds, locked, err := s.lock(ctx, Batch) // the connection gets its buffers
	if err == nil {
		err = s.unlock(ctx, holds, locked)
	}
	if err != nil {
		return before, after, err
	}
	if before, err = stateOf(ctx, s.rdb); err != nil {
		return before, after, err
	}
	for done := 0; done < pairs; done += Batch {
		holds, locked, err := s.lock(ctx, min(Batch, pairs-done))
		if err != nil {
			return before, after, err
		}
		if err := s.unlock(ctx, holds, locked); err != nil {
			return before, after, err
		}
	}
	after, err = stateOf(ctx, s.rdb)
	return before, after, err
}

func (s *ServerCost) addLeft(of *sender, when string, before, now state) {
	s.add(WorkLeft, of, "bytes"+when, (now.bytes-before.bytes)/float64(s.Left))
	s.add(WorkLeft, of, "keys"+when, (now.keys-before.keys)/float64(s.Left))
}

func stateOf(ctx context.Context, rdb *redis.Client) (st state, err error) {
	if st.cpu, err = measure.CPUTime(ctx, rdb); err != nil {
		return st, err
	}
	keys, err := rdb.DBSize(ctx).Result()
	if err != nil {
		return st, fmt.Errorf("keys: %w", err)
	}
	text, err := rdb.Info(ctx, "memory").Result()
	if err != nil {
		return st, fmt.Errorf("memory: %w", err)
	}
	_, rest, _ := strings.Cut(text, "used_memory:")
	used, _, _ := strings.Cut(rest, "\r\n")
	st.keys = float64(keys)
	if st.bytes, err = strconv.ParseFloat(used, 64); err != nil {
		return st, fmt.Errorf("memory: %w", err)
	}
	return st, nil
}
