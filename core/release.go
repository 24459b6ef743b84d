package core

import (
	"context"
	"time"
)

const (
	// releaseTimeout bounds how long Unlock and Close wait for an answer.
	releaseTimeout = 5 * time.Second
	// releaseGrace is what a release gets beyond the end of the caller's context, if that was alive when the
	// release began: enough for an answer that is on its way, too little for a frozen server to be felt.
	releaseGrace = 25 * time.Millisecond
	// afterthought bounds the background work on a release that was not confirmed.
	afterthought = time.Minute
)

// release ends a hold, detached from ctx and bounded. What it could not confirm is finished in the background.
func (c *Client) release(ctx context.Context, p protocol, h *hold) (held bool, err error) {
	detached, cancel := detach(ctx)
	defer cancel()
	err = c.persist(detached, 0, func() (err error) {
		held, err = p.release(detached, h)
		return err
	})
	if err != nil && transient(err) {
		c.giveUp(p, h)
	}
	return held, err
}

// detach returns a context with the values of ctx and a lifetime of its own.
func detach(ctx context.Context) (context.Context, context.CancelFunc) {
	detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	if ctx.Done() == nil || ctx.Err() != nil {
		return detached, cancel
	}
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-detached.Done():
		case <-time.After(releaseGrace):
			cancel()
		}
	})
	return detached, func() { stop(); cancel() }
}

// giveUp sees to it in the background that a hold which nobody will use is not left in Redis: one that was
// perhaps granted to a caller who is gone, or whose release was not confirmed. It keeps at it until Redis has
// answered, for at most the time after which Redis forgets the hold anyway. The release script remembers the
// hold, so an acquire that arrives after it is refused.
func (c *Client) giveUp(p protocol, h *hold) {
	abandoned := *h
	limit := min(max(h.ttl, h.minHold)+releaseTimeout, afterthought)
	c.background(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		err := c.persist(ctx, limit, func() error {
			_, err := p.release(ctx, &abandoned)
			return err
		})
		if err != nil {
			c.logger.Warn("holdfast: a hold that was given up could not be taken out of Redis",
				"lock", digest(h.keys.lock), "error", err)
		}
	})
}
