package acquire

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

const (
	// ReleaseTimeout bounds how long Unlock and Close wait for an answer.
	ReleaseTimeout = script.ReleaseTimeout
	// BackgroundReleaseLimit is how long beyond the TTL of a hold its release is retried in the background. Why beyond: other
	// holds of the owner may keep it in Redis.
	BackgroundReleaseLimit = 10 * time.Minute
)

// Release releases a hold, detached from ctx and bounded by ReleaseTimeout. It returns true if Redis had the hold. If it
// returns an error, the release is not confirmed and is retried in the background, so the caller need not repeat it.
//
// On one server the first try has no timer of its own, because that costs more than the release. Retries follow, unless ctx
// has ended during the first try: the caller wants to leave, and the background goes on. If ctx had ended before, its end
// says nothing about how long the caller can wait.
func (e *Environment) Release(ctx context.Context, p script.Strategy, h *script.Hold, what script.ReleaseReason) (held bool, err error) {
	over := ctx.Err() != nil
	if e.OneServer {
		held, err = p.Release(h.ReleaseCtx.Reset(ctx, transport.FirstAnswerTimeout), h, what)
	}
	if !e.OneServer || err != nil && (over || ctx.Err() == nil) {
		held, err = releaseWithRetry(ctx, p, h, what)
	}
	if err != nil {
		e.ReleaseInBackground(p, h, what)
	}
	return held, err
}

// releaseWithRetry sends a release until it is answered, detached from ctx and bounded by ReleaseTimeout.
func releaseWithRetry(ctx context.Context, p script.Strategy, h *script.Hold, what script.ReleaseReason) (held bool, err error) {
	detached, cancel := Detach(ctx)
	defer cancel()
	err = transport.RetryUntilAnswered(detached, func(ctx context.Context) (err error) {
		held, err = p.Release(ctx, h, what)
		return err
	})
	return held, err
}

// RunDetached sends an idempotent command until it is answered, detached from ctx and bounded by ReleaseTimeout. Unlike
// Release it retries nothing in the background. It gives up if ctx ends during the first try.
func (e *Environment) RunDetached(ctx context.Context, command func(context.Context) error) error {
	if e.OneServer {
		over := ctx.Err() != nil
		err := command(new(transport.DetachedContext).Reset(ctx, transport.FirstAnswerTimeout))
		if err == nil || !over && ctx.Err() != nil {
			return err
		}
	}
	detached, cancel := Detach(ctx)
	defer cancel()
	return transport.RetryUntilAnswered(detached, command)
}

// Detach returns a context with the values of ctx. It ends after ReleaseTimeout, or transport.ReleaseGrace after the end of
// ctx. If ctx has ended already, only ReleaseTimeout counts: otherwise nothing could be sent. The caller must call the
// function.
func Detach(ctx context.Context) (context.Context, context.CancelFunc) {
	detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), ReleaseTimeout)
	if ctx.Done() == nil || ctx.Err() != nil {
		return detached, cancel
	}
	stop := context.AfterFunc(ctx, func() {
		keepalive.Pause(detached, transport.ReleaseGrace, nil, nil)
		cancel()
	})
	return detached, func() { stop(); cancel() }
}

// ReleaseInBackground releases a hold that was perhaps granted after its caller had returned, or whose release was not
// confirmed. The release is retried until Redis answers, or until the TTL and BackgroundReleaseLimit have passed. The
// script remembers the hold if a request may still arrive, so that Redis refuses that request. It copies the hold, so h may
// be used again. Close does not wait for the release of a hold that has expired by itself.
func (e *Environment) ReleaseInBackground(p script.Strategy, h *script.Hold, what script.ReleaseReason) {
	abandoned := *h
	pending := p.Pending(h)
	if pending == nil { // each server of a Redlock has one, to which its release adds
		e.Go(func(ctx context.Context) { _, _ = p.Release(ctx, &abandoned, what) })
		return
	}
	now := e.Now()
	moot := abandoned.ExpiresAt
	if moot == 0 {
		moot = now.Add(max(abandoned.TTL, abandoned.MinHold))
	}
	taken := pending.Add(&transport.PendingCommand{
		Send: func(ctx context.Context) error {
			_, err := p.Release(new(transport.DetachedContext).Reset(ctx, transport.FirstAnswerTimeout), &abandoned, what)
			return err
		},
		Due: now, Until: now.Add(max(abandoned.TTL, abandoned.MinHold) + BackgroundReleaseLimit), Moot: moot,
		Ended: func(err error) {
			// The caller of a lock that was held knows already: from the error of Unlock, or from the loss of the lease.
			if err != nil && what != script.HeldByCaller && !transport.WrongType(err) {
				e.NotReleased(&abandoned, err)
			}
		},
	})
	if !taken && !e.Operations.IsClosed() {
		e.TooManyPending()
	}
}
