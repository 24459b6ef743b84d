package core

import (
	"context"
	"time"
)

// detachedContext is the context of a command that must be sent even after the caller's context has ended. The executor
// waits for the answer until the timeout. If the caller's context ends meanwhile, it waits for releaseGrace more.
//
// Why the executor of a single server has to know the type: a context with a timer of its own would cost a release more
// than the release itself.
type detachedContext struct {
	context.Context               // the caller's; without its end if that came before
	timeout         time.Duration // for the answer
}

// reset prepares the context for one command and returns it.
func (e *detachedContext) reset(ctx context.Context, limit time.Duration) context.Context {
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	e.Context, e.timeout = ctx, limit
	return e
}

// hasOneServer reports whether locks live on one server or Cluster, whose executor knows detachedContext.
func (k *keeper) hasOneServer() bool { return len(k.redis) == 1 }
