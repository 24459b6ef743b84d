package lockscript

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// OneRedis is what all strategies on one Redis have in common: one script renews, one raises holds of every kind.
type OneRedis struct {
	*Instance
}

// Renew implements [Strategy].
func (p OneRedis) Renew(ctx context.Context, h *Hold, ttl time.Duration) (bool, error) {
	reply, err := p.Exec.DoWithAck(ctx, h.Ack, renewScript, h.renewed(), h.ID, Milliseconds(ttl))
	if err == nil && reply == renewedInPart {
		reply, err = p.Exec.DoWithAck(ctx, h.Ack, renewScript, h.Keys.shared(), h.ID, Milliseconds(ttl))
	}
	if err != nil {
		return false, err
	}
	return reply == int64(1), nil
}

// renewedInPart is the answer to a renewal that prolongs an exclusive hold whose owner has, or had, shares too.
const renewedInPart = int64(2)

// RenewAll implements [Strategy]: one batch has all renewals.
func (p OneRedis) RenewAll(renewals []*Renewal) {
	calls := make([]*transport.Command, len(renewals))
	for i, r := range renewals {
		calls[i] = p.RenewalCommand(r, r.Done)
	}
	p.Exec.SubmitRenewals(calls)
}

// RenewalCommand returns the command of a renewal. Its outcome is given to done.
func (p OneRedis) RenewalCommand(r *Renewal, done func(sentAt clock.Instant, held bool, err error)) *transport.Command {
	c := transport.NewCommand(renewScript, r.Hold.renewed(), r.Hold.ID, Milliseconds(r.Hold.TTL))
	c.Ack = r.Hold.Ack
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
func (p OneRedis) renewRest(h *Hold) {
	c := transport.NewCommand(renewScript, h.Keys.shared(), h.ID, Milliseconds(h.TTL))
	c.Done = func(*transport.Command) {}
	p.Exec.SubmitRenewals([]*transport.Command{c})
}

// renewed returns the keys of a renewal, see lua/renew.lua.
func (h *Hold) renewed() []string {
	if h.Shares {
		return h.Keys.shared()
	}
	return []string{h.Keys.Lock}
}

// shared returns the keys of a lock that is shared.
func (k Keys) shared() []string { return []string{k.Lock, k.ShareExpiries()} }

// Raise implements [Strategy].
func (p OneRedis) Raise(ctx context.Context, h *Hold, token int64) (bool, error) {
	reply, err := p.Exec.DoWithAck(ctx, h.Ack, raiseScript, []string{h.Keys.Lock, h.Keys.Token, h.Keys.ShareExpiries()},
		h.ID, token, Milliseconds(TokenMemory))
	if err != nil {
		return false, err
	}
	return reply == int64(1), nil
}

// Subscribe subscribes to broadcasts: what a Mutex or Redisson publishes when it unlocks.
func (p OneRedis) Subscribe(k Keys) Subscription {
	return p.Subs.Subscribe(k.Channel, "")
}

// SubscribeIfActive returns nil.
func (OneRedis) SubscribeIfActive(Keys) Subscription { return nil }

// Bar implements [Strategy].
func (p OneRedis) Bar(h *Hold) { p.barAll(h.Keys.Lock, h.Released) }

// barAll bars the requests of several holds whose keys share a slot with the lock.
func (p OneRedis) barAll(lock string, released ...string) {
	p.Exec.PendingOf(lock).Add(&transport.PendingCommand{
		Send: func(ctx context.Context) error {
			_, err := p.Exec.Do(new(transport.DetachedContext).Reset(ctx, transport.FirstAnswer), barScript, released, Milliseconds(AbandonMemory))
			return err
		},
		Until: p.Now().Add(AbandonMemory),
	})
}

// Pending implements [Strategy].
func (p OneRedis) Pending(h *Hold) *transport.Pending { return p.Exec.PendingOf(h.Keys.Lock) }

// locationMemory is how long the name of a place outlives its last use. The memory must be longer than any wait.
const locationMemory = 24 * time.Hour

// DeploymentID implements [Strategy]. The name is kept beside the lock instead of being made of what the server tells of
// itself. Why: the name then lives exactly as long as the state of the lock, through restarts, failovers and moves of
// slots, and needs no rights that the lock does not need.
func (p OneRedis) DeploymentID(ctx context.Context, k Keys) (string, error) {
	reply, err := p.Exec.Do(ctx, deploymentIDScript, []string{k.Deployment()},
		p.IDs.Next(), Milliseconds(locationMemory))
	if err != nil {
		return "", err
	}
	return fmt.Sprint(reply), nil
}
