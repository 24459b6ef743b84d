package core_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// witness counts the commands that a hook of the user's client sees.
type witness struct{ seen atomic.Int64 }

func (w *witness) DialHook(next redis.DialHook) redis.DialHook { return next }

func (w *witness) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		w.seen.Add(1)
		return next(ctx, cmd)
	}
}

func (w *witness) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// TestHooksSeeLoneCommands: whichever way a command goes, hooks for traces and metrics see it.
func TestHooksSeeLoneCommands(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client()
	w := new(witness)
	rdb.AddHook(w)
	locks := newClient(t, rdb, core.WithLogger(nil))
	unlock(t, mustLock(t, locks.Mutex("warm")))
	before := w.seen.Load()
	const pairs = 50
	for range pairs {
		unlock(t, mustLock(t, locks.Mutex("name")))
	}
	if seen := w.seen.Load() - before; seen < 2*pairs {
		t.Errorf("the hook has seen %d commands of %d", seen, 2*pairs)
	}
}
