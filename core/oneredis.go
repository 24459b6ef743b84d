package core

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// oneRedis is what all strategies on one Redis have in common: one script renews, one raises holds of every kind.
type oneRedis struct {
	server *server
}

func (p oneRedis) renew(ctx context.Context, h *hold, ttl time.Duration) (bool, error) {
	reply, err := p.server.exec.DoWithAck(ctx, h.ack, renewScript, h.renewed(), h.id, milliseconds(ttl))
	if err == nil && reply == renewedInPart {
		reply, err = p.server.exec.DoWithAck(ctx, h.ack, renewScript, h.keys.shared(), h.id, milliseconds(ttl))
	}
	if err != nil {
		return false, err
	}
	return reply == int64(1), nil
}

// renewedInPart is the answer to a renewal that prolongs an exclusive hold of an owner who has, or had, shares too.
const renewedInPart = int64(2)

func (p oneRedis) RenewAll(renewals []*renewal) {
	calls := make([]*transport.Command, len(renewals))
	for i, r := range renewals {
		calls[i] = p.renewal(r, r.Done)
	}
	p.server.exec.SubmitRenewals(calls)
}

// renewal is the command that renews; done takes its outcome.
func (p oneRedis) renewal(r *renewal, done func(sentAt clock.Instant, held bool, err error)) *transport.Command {
	c := transport.NewCommand(renewScript, r.Hold.renewed(), r.Hold.id, milliseconds(r.Hold.ttl))
	c.Ack = r.Hold.ack
	c.OnSend = func() { r.Sent.Store(true) }
	c.Done = func(c *transport.Command) {
		if c.Reply == renewedInPart {
			p.renewRest(r.Hold)
		}
		done(c.SentAt, c.Reply == int64(1) || c.Reply == renewedInPart, cmp.Or(c.Err, lostBy(c.Reply)))
	}
	return c
}

// lostBy returns why a renewal has not found its hold, nil if it has, or if that is not known.
func lostBy(reply any) error {
	switch reply {
	case int64(0):
		return keepalive.Gone
	case int64(-1):
		return keepalive.Replaced
	}
	return nil
}

// renewRest sends a renewal again that was made in part. Should it fail, the next one will be made in part too.
func (p oneRedis) renewRest(h *hold) {
	c := transport.NewCommand(renewScript, h.keys.shared(), h.id, milliseconds(h.ttl))
	c.Done = func(*transport.Command) {}
	p.server.exec.SubmitRenewals([]*transport.Command{c})
}

// renewed returns the keys of a renewal, see lua/renew.lua.
func (h *hold) renewed() []string {
	if h.shares {
		return h.keys.shared()
	}
	return []string{h.keys.lock}
}

// shared returns the keys of a lock that is shared.
func (k keys) shared() []string { return []string{k.lock, k.shareExpiries()} }

func (p oneRedis) raise(ctx context.Context, h *hold, token int64) (bool, error) {
	reply, err := p.server.exec.DoWithAck(ctx, h.ack, raiseScript, []string{h.keys.lock, h.keys.token, h.keys.shareExpiries()},
		h.id, token, milliseconds(tokenMemory))
	if err != nil {
		return false, err
	}
	return reply == int64(1), nil
}

// subscribe subscribes to broadcasts: what a Mutex or Redisson publishes when it unlocks.
func (p oneRedis) subscribe(k keys) releaseSubscription {
	return p.server.subs.Subscribe(k.channel, "")
}

func (oneRedis) subscribeIfActive(keys) releaseSubscription { return nil }

func (p oneRedis) bar(h *hold) { p.barAll(h.keys.lock, h.released) }

// barAll bars the requests of several holds whose keys share a slot with the lock.
func (p oneRedis) barAll(lock string, released ...string) {
	k := p.server.keeper
	p.server.exec.PendingOf(lock).Add(&transport.PendingCommand{
		Send: func(ctx context.Context) error {
			_, err := p.server.exec.Do(new(transport.DetachedContext).Reset(ctx, firstAnswer), barScript, released, milliseconds(abandonMemory))
			return err
		},
		Until: k.now().Add(abandonMemory),
	})
}

func (p oneRedis) pending(h *hold) *transport.Pending { return p.server.exec.PendingOf(h.keys.lock) }

func (p oneRedis) location(ctx context.Context, k keys) (string, error) {
	reply, err := p.server.exec.Do(ctx, deploymentIDScript, []string{k.deployment()},
		p.server.keeper.newID(), milliseconds(locationMemory))
	if err != nil {
		return "", err
	}
	return fmt.Sprint(reply), nil
}
