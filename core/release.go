package core

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/lifecycle"
	"github.com/holdfast-go/holdfast/core/internal/lockscript"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

const (
	// releaseTimeout bounds how long Unlock and Close wait for an answer.
	releaseTimeout = 5 * time.Second
	// backgroundReleaseLimit is how long beyond the TTL of a hold its release is retried in the background. Why beyond: other
	// holds of the owner may keep it in Redis.
	backgroundReleaseLimit = 10 * time.Minute
)

// release releases a hold, detached from ctx and bounded by releaseTimeout. If it is not confirmed, it is retried in the
// background.
func (k *keeper) release(ctx context.Context, p lockscript.Strategy, h *lockscript.Hold, what lockscript.ReleaseReason) (held bool, err error) {
	over := ctx.Err() != nil
	if k.hasOneServer() {
		held, err = p.Release(h.ReleaseCtx.Reset(ctx, transport.FirstAnswerTimeout), h, what)
	}
	if !k.hasOneServer() || err != nil && (over || ctx.Err() == nil) {
		held, err = releaseWithRetry(ctx, p, h, what)
	}
	if err != nil {
		k.releaseInBackground(p, h, what)
	}
	return held, err
}

func releaseWithRetry(ctx context.Context, p lockscript.Strategy, h *lockscript.Hold, what lockscript.ReleaseReason) (held bool, err error) {
	detached, cancel := detach(ctx)
	defer cancel()
	err = transport.RetryUntilAnswered(detached, func(ctx context.Context) (err error) {
		held, err = p.Release(ctx, h, what)
		return err
	})
	return held, err
}

// runDetached sends an idempotent command until it is answered, detached from ctx and bounded by releaseTimeout.
func (k *keeper) runDetached(ctx context.Context, command func(context.Context) error) error {
	if k.hasOneServer() {
		over := ctx.Err() != nil
		err := command(new(transport.DetachedContext).Reset(ctx, transport.FirstAnswerTimeout))
		if err == nil || !over && ctx.Err() != nil {
			return err
		}
	}
	detached, cancel := detach(ctx)
	defer cancel()
	return transport.RetryUntilAnswered(detached, command)
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
func (k *keeper) releaseInBackground(p lockscript.Strategy, h *lockscript.Hold, what lockscript.ReleaseReason) {
	k.releaseInBackgroundAfter(0, p, h, what)
}

// releaseInBackgroundAfter is releaseInBackground after a delay.
func (k *keeper) releaseInBackgroundAfter(wait time.Duration, p lockscript.Strategy, h *lockscript.Hold, what lockscript.ReleaseReason) {
	abandoned := *h
	release := func(ctx context.Context) error {
		_, err := p.Release(new(transport.DetachedContext).Reset(ctx, transport.FirstAnswerTimeout), &abandoned, what)
		return err
	}
	queue := p.Pending(h)
	if queue == nil { // each server of a Redlock has one
		k.background(func(ctx context.Context) {
			lifecycle.Pause(ctx, wait, nil, k.operations.Closing)
			_, _ = p.Release(ctx, &abandoned, what)
		})
		return
	}
	due := k.now().Add(wait)
	taken := queue.Add(&transport.PendingCommand{
		Send: release, Due: due, Until: due.Add(max(abandoned.TTL, abandoned.MinHold) + backgroundReleaseLimit),
		Ended: func(err error) { k.reportUnreleased(&abandoned, err) },
	})
	if !taken && !k.operations.IsClosed() {
		k.warnOnce(&k.overdue, "too many releases are pending: further holds are left to expire",
			"waiting", transport.MaxPending)
	}
}

// reportUnreleased warns of a hold that is left in Redis.
func (k *keeper) reportUnreleased(h *lockscript.Hold, err error) {
	if err != nil && !transport.WrongType(err) {
		k.logger.Warn("holdfast: the hold of a cancelled acquisition could not be removed from Redis",
			"lock", digest(h.Keys.Lock), "error", err)
	}
}
