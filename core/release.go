package core

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// releaseTimeout bounds how long Unlock and Close wait for an answer.
	releaseTimeout = 5 * time.Second
	// firstAnswer is how long the first try of a release is waited for, and each further one twice as long as the
	// one before it. Shorter than go-redis waits on a connection that says nothing, so that another connection has
	// its chance in time.
	firstAnswer = time.Second
	// releaseGrace is what a release gets beyond the end of the caller's context, if that was alive when the
	// release began: enough for an answer that is on its way, too little for a frozen server to be felt.
	releaseGrace = 25 * time.Millisecond
	// afterthought is how much longer than a hold's own time its release is tried in the background, since the
	// owner's other holds may keep it in Redis.
	afterthought = 10 * time.Minute
)

// release ends a hold, detached from ctx and bounded. What it could not confirm is finished in the background.
func (k *keeper) release(ctx context.Context, p protocol, h *hold, what usage) (held bool, err error) {
	over := ctx.Err() != nil
	if k.hasOneServer() {
		held, err = p.release(h.errand.send(ctx, firstAnswer), h, what)
	}
	if !k.hasOneServer() || err != nil && (over || ctx.Err() == nil) {
		held, err = releaseInsistently(ctx, p, h, what)
	}
	if err != nil {
		k.giveUp(p, h, what)
	}
	return held, err
}

func releaseInsistently(ctx context.Context, p protocol, h *hold, what usage) (held bool, err error) {
	detached, cancel := detach(ctx)
	defer cancel()
	err = insist(detached, func(ctx context.Context) (err error) {
		held, err = p.release(ctx, h, what)
		return err
	})
	return held, err
}

// finish sends an idempotent command until it is answered, detached from ctx and bounded.
func (k *keeper) finish(ctx context.Context, command func(context.Context) error) error {
	if k.hasOneServer() {
		over := ctx.Err() != nil
		err := command(new(errand).send(ctx, firstAnswer))
		if err == nil || !over && ctx.Err() != nil {
			return err
		}
	}
	detached, cancel := detach(ctx)
	defer cancel()
	return insist(detached, command)
}

// insist sends an idempotent command until it is answered, on another connection if there is no answer soon.
func insist(ctx context.Context, command func(context.Context) error) error {
	limit := firstAnswer
	return persist(ctx, 0, transient, func() error {
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
		pause(detached, releaseGrace, nil, nil)
		cancel()
	})
	return detached, func() { stop(); cancel() }
}

// giveUp sees to it in the background that a hold which nobody has any more is not left in Redis: one that was
// perhaps granted to a caller who is gone, or whose release was not confirmed. It keeps at it until Redis has
// answered. The release script remembers the hold, so an acquire that arrives after it is refused.
func (k *keeper) giveUp(p protocol, h *hold, what usage) {
	abandoned := *h
	k.background(func(ctx context.Context) {
		limit := max(abandoned.ttl, abandoned.minHold) + afterthought
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		err := persist(ctx, limit, curable, func() error {
			_, err := p.release(ctx, &abandoned, what)
			return err
		})
		if err != nil && !wrongType(err) && !undecided(err) {
			k.logger.Warn("holdfast: a hold that was given up could not be taken out of Redis",
				"lock", digest(abandoned.keys.lock), "error", err)
		}
	})
}

// curable reports whether an error of a release may pass: any but those that time does not change. Rights may be
// given back, memory and disks become free. Each server of a Redlock is asked again by itself, see debts.go.
func curable(err error) bool {
	return !errors.Is(err, redis.ErrClosed) && !wrongType(err) && !undecided(err)
}
