package core

import (
	"context"
	"time"
)

// errand is the context of a command that has to be done also after the caller's context has ended: within a time of
// its own, and if that ends while it is under way, within a moment. It is no context with an end of its own, which
// would cost a release more than the release itself: only the executor of one server knows what it means.
type errand struct {
	context.Context               // the caller's, without its end if that came before
	limit           time.Duration // for the answer
}

// send prepares an errand.
func (e *errand) send(ctx context.Context, limit time.Duration) context.Context {
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	e.Context, e.limit = ctx, limit
	return e
}

// hasOneServer reports whether locks live on one server, or Cluster, whose executor understands errands.
func (k *keeper) hasOneServer() bool { return len(k.redis) == 1 }
