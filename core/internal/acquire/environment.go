package acquire

import (
	"context"

	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// Environment is what the acquisitions and releases of one client share. It must not be changed after the first of them,
// and is safe for concurrent use.
type Environment struct {
	transport.Background
	IDs *script.IDs
	// OneServer is true if locks live on one server or Cluster, whose executor knows transport.DetachedContext. It is false
	// for a Redlock.
	OneServer bool

	Lists      *Lists      // for locks without a queue in Redis
	Heartbeats *Heartbeats // nil for a Redlock, which has no queues
	Limit      *Limit
	Calls      *Calls // that wait, for operators

	// NotReleased is called with a hold that no caller got and that could not be removed from Redis. It runs on
	// the goroutine that sends pending commands, so it must not block.
	NotReleased func(h *script.Hold, err error)
	// TooManyPending is called if a hold is left to expire because transport.MaxPending releases are pending.
	TooManyPending func()
	// LastLeft is called when the last caller of this client that waited for a lock waits no more. It must be cheap.
	LastLeft func(lock string)
}

// timeUp returns true if ctx has ended or Close of the client has begun. Then the acquisition must end with
// ErrTimeUp.
func (e *Environment) timeUp(ctx context.Context) bool {
	return ctx.Err() != nil || e.Operations.IsClosed()
}
