package core

import (
	"context"
	"fmt"
	"time"
)

// oneRedis is what all strategies on one Redis have in common: one script renews, one raises holds of every kind.
type oneRedis struct {
	server *server
}

func (p oneRedis) renew(ctx context.Context, h *hold, ttl time.Duration) (bool, error) {
	reply, err := p.server.exec.do(ctx, renewScript, []string{h.keys.lock, h.keys.reads()}, h.id, milliseconds(ttl))
	if err != nil {
		return false, err
	}
	return reply == int64(1), nil
}

func (p oneRedis) renewAll(renewals []*renewal) {
	calls := make([]*call, len(renewals))
	for i, r := range renewals {
		calls[i] = p.renewal(r, r.done)
	}
	p.server.exec.renew(calls)
}

// renewal is the command that renews; done takes its outcome.
func (p oneRedis) renewal(r *renewal, done func(sentAt instant, held bool, err error)) *call {
	return &call{
		ctx:    context.Background(),
		script: renewScript,
		keys:   []string{r.hold.keys.lock, r.hold.keys.reads()},
		args:   []any{r.hold.id, milliseconds(r.hold.ttl)},
		board:  func() { r.sent.Store(true) },
		done:   func(c *call) { done(c.sentAt, c.reply == int64(1), c.err) },
	}
}

func (p oneRedis) raise(ctx context.Context, h *hold, token int64) (bool, error) {
	reply, err := p.server.exec.do(ctx, raiseScript, []string{h.keys.lock, h.keys.token, h.keys.reads()},
		h.id, token, milliseconds(tokenMemory))
	if err != nil {
		return false, err
	}
	return reply == int64(1), nil
}

// listen hears what is said to everybody: what a Mutex or Redisson says when they unlock.
func (p oneRedis) listen(k keys) ear { return p.server.listen.to(k.channel, "") }

func (p oneRedis) location(ctx context.Context, k keys) (string, error) {
	reply, err := p.server.exec.do(ctx, locationScript, []string{k.location()},
		p.server.keeper.newID(), milliseconds(locationMemory))
	if err != nil {
		return "", err
	}
	return fmt.Sprint(reply), nil
}
