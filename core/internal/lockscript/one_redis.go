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
func (r OneRedis) Renew(ctx context.Context, h *Hold, ttl time.Duration) (bool, error) {
	reply, err := r.Exec.DoWithAck(ctx, h.Ack, renewScript, h.renewed(), h.ID, Milliseconds(ttl))
	if err == nil && reply == renewedInPart {
		reply, err = r.Exec.DoWithAck(ctx, h.Ack, renewScript, h.Keys.shared(), h.ID, Milliseconds(ttl))
	}
	if err != nil {
		return false, err
	}
	return reply == int64(1), nil
}

// renewedInPart is the answer to a renewal that prolongs an exclusive hold whose owner has, or had, shares too.
const renewedInPart = int64(2)

// RenewAll implements [Strategy]: one batch has all renewals.
func (r OneRedis) RenewAll(renewals []*Renewal) {
	commands := make([]*transport.Command, len(renewals))
	for i, renewal := range renewals {
		commands[i] = r.RenewalCommand(renewal, renewal.Done)
	}
	r.Exec.SubmitRenewals(commands)
}

// RenewalCommand returns the command of a renewal. Its outcome is given to done.
func (r OneRedis) RenewalCommand(renewal *Renewal, done func(sentAt clock.Instant, held bool, err error)) *transport.Command {
	c := transport.NewCommand(renewScript, renewal.Hold.renewed(), renewal.Hold.ID, Milliseconds(renewal.Hold.TTL))
	c.Ack = renewal.Hold.Ack
	c.OnSend = func() { renewal.Sent.Store(true) }
	c.Done = func(c *transport.Command) {
		if c.Reply == renewedInPart {
			r.renewRest(renewal.Hold)
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
func (r OneRedis) renewRest(h *Hold) {
	c := transport.NewCommand(renewScript, h.Keys.shared(), h.ID, Milliseconds(h.TTL))
	c.Done = func(*transport.Command) {}
	r.Exec.SubmitRenewals([]*transport.Command{c})
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
func (r OneRedis) Raise(ctx context.Context, h *Hold, token int64) (bool, error) {
	reply, err := r.Exec.DoWithAck(ctx, h.Ack, raiseScript, []string{h.Keys.Lock, h.Keys.Token, h.Keys.ShareExpiries()},
		h.ID, token, Milliseconds(TokenMemory))
	if err != nil {
		return false, err
	}
	return reply == int64(1), nil
}

// Subscribe subscribes to broadcasts: what a Mutex or Redisson publishes when it unlocks.
func (r OneRedis) Subscribe(k Keys) Subscription {
	return r.Subs.Subscribe(k.Channel, "")
}

// SubscribeIfActive returns nil.
func (OneRedis) SubscribeIfActive(Keys) Subscription { return nil }

// Bar implements [Strategy].
func (r OneRedis) Bar(h *Hold) { r.barAll(h.Keys.Lock, h.Released) }

// barAll bars the requests of several holds whose keys share a slot with the lock.
func (r OneRedis) barAll(lock string, released ...string) {
	r.Exec.PendingOf(lock).Add(&transport.PendingCommand{
		Send: func(ctx context.Context) error {
			_, err := r.Exec.Do(new(transport.DetachedContext).Reset(ctx, transport.FirstAnswerTimeout), barScript, released, Milliseconds(AbandonMemory))
			return err
		},
		Until: r.Now().Add(AbandonMemory),
	})
}

// Pending implements [Strategy].
func (r OneRedis) Pending(h *Hold) *transport.Pending { return r.Exec.PendingOf(h.Keys.Lock) }

// locationMemory is how long the name of a place outlives its last use. The memory must be longer than any wait.
const deploymentMemory = 24 * time.Hour

// DeploymentID implements [Strategy]. The name is kept beside the lock instead of being made of what the server tells of
// itself. Why: the name then lives exactly as long as the state of the lock, through restarts, failovers and moves of
// slots, and needs no rights that the lock does not need.
func (r OneRedis) DeploymentID(ctx context.Context, k Keys) (string, error) {
	reply, err := r.Exec.Do(ctx, deploymentIDScript, []string{k.Deployment()},
		r.IDs.Next(), Milliseconds(deploymentMemory))
	if err != nil {
		return "", err
	}
	return fmt.Sprint(reply), nil
}
