package core

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/lifecycle"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

const (
	// releaseTimeout bounds how long Unlock and Close wait for an answer.
	releaseTimeout = 5 * time.Second
	// firstAnswer is how long the first try of a release is waited for, and each further one twice as long as the
	// one before it. Shorter than go-redis waits on a connection that says nothing, so that another connection has
	// its chance in time.
	firstAnswer = time.Second
	// backgroundReleaseLimit is how long beyond the TTL of a hold its release is retried in the background. Why beyond: other
	// holds of the owner may keep it in Redis.
	backgroundReleaseLimit = 10 * time.Minute
)

// releaseMemories returns how long Redis remembers the release of a hold, in ms: if the release finds the hold, and if it
// does not. It is longer if a request of the hold may still arrive.
//
// The release of a hold that was never used and has one request without an answer may find the hold: then the request
// has arrived, and no other will.
func (h *hold) releaseMemories(what releaseReason) (found, missing any) {
	switch {
	case what == onlyQueued:
		return 0, 0
	case what == neverHeld && h.unanswered <= 1:
		return releaseMemoryArg, abandonMemoryArg
	case what == neverHeld || h.unanswered > 0:
		return abandonMemoryArg, abandonMemoryArg
	}
	return releaseMemoryArg, releaseMemoryArg
}

// release releases a hold, detached from ctx and bounded by releaseTimeout. If it is not confirmed, it is retried in the
// background.
func (k *keeper) release(ctx context.Context, p protocol, h *hold, what releaseReason) (held bool, err error) {
	over := ctx.Err() != nil
	if k.hasOneServer() {
		held, err = p.release(h.releaseCtx.Reset(ctx, firstAnswer), h, what)
	}
	if !k.hasOneServer() || err != nil && (over || ctx.Err() == nil) {
		held, err = releaseWithRetry(ctx, p, h, what)
	}
	if err != nil {
		k.releaseInBackground(p, h, what)
	}
	return held, err
}

func releaseWithRetry(ctx context.Context, p protocol, h *hold, what releaseReason) (held bool, err error) {
	detached, cancel := detach(ctx)
	defer cancel()
	err = retryUntilAnswered(detached, func(ctx context.Context) (err error) {
		held, err = p.release(ctx, h, what)
		return err
	})
	return held, err
}

// runDetached sends an idempotent command until it is answered, detached from ctx and bounded by releaseTimeout.
func (k *keeper) runDetached(ctx context.Context, command func(context.Context) error) error {
	if k.hasOneServer() {
		over := ctx.Err() != nil
		err := command(new(transport.DetachedContext).Reset(ctx, firstAnswer))
		if err == nil || !over && ctx.Err() != nil {
			return err
		}
	}
	detached, cancel := detach(ctx)
	defer cancel()
	return retryUntilAnswered(detached, command)
}

// retryUntilAnswered sends an idempotent command until it is answered or ctx ends. Each try has a timeout, so that the
// next one can use another connection.
func retryUntilAnswered(ctx context.Context, command func(context.Context) error) error {
	limit := firstAnswer
	return transport.Retry(ctx, 0, transport.Transient, func() error {
		try, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		limit = min(2*limit, releaseTimeout) // tries can be many while a slot moves
		return command(try)
	})
}

// detach returns a context with the values of ctx and a lifetime of its own.
func detach(ctx context.Context) (context.Context, context.CancelFunc) {
	detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	if ctx.Done() == nil || ctx.Err() != nil {
		return detached, cancel
	}
	stop := context.AfterFunc(ctx, func() {
		lifecycle.Pause(detached, transport.ReleaseGrace, nil, nil)
		cancel()
	})
	return detached, func() { stop(); cancel() }
}

// releaseInBackground releases a hold that was perhaps granted after its caller had returned, or whose release was not
// confirmed. The release is retried until Redis answers. The script remembers the hold, so that a request which arrives
// after its release is refused.
func (k *keeper) releaseInBackground(p protocol, h *hold, what releaseReason) {
	k.releaseInBackgroundAfter(0, p, h, what)
}

// releaseInBackgroundAfter is releaseInBackground after a delay.
func (k *keeper) releaseInBackgroundAfter(wait time.Duration, p protocol, h *hold, what releaseReason) {
	abandoned := *h
	release := func(ctx context.Context) error {
		_, err := p.release(new(transport.DetachedContext).Reset(ctx, firstAnswer), &abandoned, what)
		return err
	}
	queue := p.pending(h)
	if queue == nil { // each server of a Redlock has one
		k.background(func(ctx context.Context) {
			lifecycle.Pause(ctx, wait, nil, k.operations.Closing)
			_, _ = p.release(ctx, &abandoned, what)
		})
		return
	}
	due := k.now().Add(wait)
	taken := queue.Add(&transport.PendingCommand{
		Send: release, Due: due, Until: due.Add(max(abandoned.ttl, abandoned.minHold) + backgroundReleaseLimit),
		Ended: func(err error) { k.reportUnreleased(&abandoned, err) },
	})
	if !taken && !k.operations.IsClosed() {
		k.warnOnce(&k.overdue, "too many releases are pending: further holds are left to expire",
			"waiting", transport.MaxPending)
	}
}

// reportUnreleased warns of a hold that is left in Redis.
func (k *keeper) reportUnreleased(h *hold, err error) {
	if err != nil && !transport.WrongType(err) {
		k.logger.Warn("holdfast: the hold of a cancelled acquisition could not be removed from Redis",
			"lock", digest(h.keys.lock), "error", err)
	}
}
