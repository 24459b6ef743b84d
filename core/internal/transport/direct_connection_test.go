package transport

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestDirectPathConnection: the direct path keeps a connection for commands that follow each other, unless the pool has few. It
// gives the connection back after a pause, with its view, and when there is no command for a time.
func TestDirectPathConnection(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		poolSize, maxActive int
		keeps               bool
	}{{0, 0, true}, {minPoolSize, 0, true}, {minPoolSize, minPoolSize, true}, {minPoolSize - 1, 0, false}, {minPoolSize, 1, false}} {
		rdb := redis.NewClient(&redis.Options{PoolSize: test.poolSize, MaxActiveConns: test.maxActive})
		e := NewExecutor(rdb, Background{}, nil)
		e.UseDirectPath()
		p := &e.direct
		for _, step := range []struct {
			after time.Duration
			keeps bool
		}{
			{0, false},
			{time.Microsecond, true},
			{directConnRest - 1, true},
			{directConnRest, false},
			{time.Microsecond, true},
			{directViewTTL, false},
			{1, true},
		} {
			p.client(p.lastUsed+step.after, die)
			if kept := p.kept.Load() != nil; kept != (step.keeps && test.keeps) {
				t.Errorf("pool of %d, %d active: %v after the last command, kept = %v", test.poolSize, test.maxActive, step.after, kept)
			}
		}
		if p.deadline.checkExpired(); p.kept.Load() != nil {
			t.Errorf("pool of %d: kept without a command", test.poolSize)
		}
		p.client(p.lastUsed+1, die)
		p.client(p.lastUsed+1, die)
		if kept := p.kept.Load() != nil; kept != test.keeps {
			t.Errorf("pool of %d, %d active: before Close, kept = %v", test.poolSize, test.maxActive, kept)
		}
		if e.Close(time.Second); p.kept.Load() != nil {
			t.Errorf("pool of %d: kept after Close", test.poolSize)
		}
		if err := rdb.Close(); err != nil {
			t.Error(err)
		}
	}
}
