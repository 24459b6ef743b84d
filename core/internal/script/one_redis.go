package script

import (
	"cmp"
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// OneRedis has the methods that all strategies on one Redis share. Its scripts renew and raise holds of every kind.
type OneRedis struct {
	*Instance
}

// Abilities implements [Strategy].
func (OneRedis) Abilities() Abilities { return Abilities{} }

// Renew implements [Strategy]. A second command follows with the keys of shares if Redis says that it needs them.
func (r OneRedis) Renew(ctx context.Context, h *Hold, ttl time.Duration) (bool, error) {
	reply, err := r.Exec.DoWithAck(ctx, h.Ack, renewScript, h.renewed(), h.ID, Milliseconds(ttl))
	for err == nil && h.repeated(reply) != nil {
		reply, err = r.Exec.DoWithAck(ctx, h.Ack, renewScript, h.repeated(reply), h.ID, Milliseconds(ttl))
	}
	if err != nil {
		return false, err
	}
	status, err := readStatus(reply, -1, 5)
	return status == 1, err
}

// Replies to a renewal that must be repeated with the keys of shares. Why not always with these: in a Cluster, a script with
// one key runs even while its slot moves, see lua/lock/renew.lua.
const (
	renewedInPart = int64(2) // an exclusive hold was prolonged, but not the shares beside it
	sharedHold    = int64(3) // nothing was prolonged: the hold is a share, and the lock has lost its compact state

	// The same, and an owner has permits of the lock.
	sharedHoldBesidePermits    = int64(4)
	renewedInPartBesidePermits = int64(5)
)

// repeated returns the keys with which a renewal that was answered so must be repeated, nil if it need not.
func (h *Hold) repeated(reply any) []string {
	switch reply {
	case renewedInPart, sharedHold:
		return h.shared()
	case renewedInPartBesidePermits, sharedHoldBesidePermits:
		return h.withSlots()
	}
	return nil
}

// RenewAll implements [Strategy]. Each renewal is one command, and one batch has all commands.
func (r OneRedis) RenewAll(renewals []*Renewal) {
	commands := make([]*transport.Command, len(renewals))
	for i, renewal := range renewals {
		commands[i] = r.RenewalCommand(renewal, renewal.Done)
	}
	r.Exec.SubmitRenewals(commands)
}

// RenewalCommand returns the command of a renewal, which calls done with the outcome, see keepalive.Renewal.
func (r OneRedis) RenewalCommand(renewal *Renewal, done func(sentAt keepalive.Instant, held bool, err error)) *transport.Command {
	c := r.renewalWith(renewal.Hold.renewed(), renewal, done)
	answered := c.Done
	c.Done = func(c *transport.Command) {
		switch c.Reply {
		case sharedHold, sharedHoldBesidePermits:
			r.Exec.SubmitRenewals([]*transport.Command{r.renewalRepeated(c.Reply, renewal, done)})
			return
		case renewedInPart, renewedInPartBesidePermits:
			r.renewRest(renewal.Hold, renewal.Hold.repeated(c.Reply))
		}
		answered(c)
	}
	return c
}

// renewalRepeated returns the command that repeats a renewal of a share which was answered so. It is repeated once more if the
// lock has got permits meanwhile.
func (r OneRedis) renewalRepeated(reply any, renewal *Renewal, done func(sentAt keepalive.Instant, held bool, err error)) *transport.Command {
	c := r.renewalWith(renewal.Hold.repeated(reply), renewal, done)
	if reply == sharedHold {
		answered := c.Done
		c.Done = func(c *transport.Command) {
			if c.Reply == sharedHoldBesidePermits {
				r.Exec.SubmitRenewals([]*transport.Command{r.renewalRepeated(c.Reply, renewal, done)})
				return
			}
			answered(c)
		}
	}
	return c
}

// renewalWith returns the command of a renewal with these keys.
func (r OneRedis) renewalWith(keys []string, renewal *Renewal, done func(sentAt keepalive.Instant, held bool, err error)) *transport.Command {
	c := transport.NewCommand(renewScript, keys, renewal.Hold.ID, Milliseconds(renewal.Hold.TTL))
	c.Ack = renewal.Hold.Ack
	c.OnSend = func() { renewal.Sent.Store(true) }
	c.Done = func(c *transport.Command) {
		held, err := readRenewal(c.Reply)
		done(c.SentAt, held && c.Err == nil, cmp.Or(c.Err, err))
	}
	return c
}

// readRenewal returns true if a renewal has prolonged its hold. The error is the cause if it has not found the hold, and nil if the
// cause is not known. An unexpected reply says nothing about the hold.
func readRenewal(reply any) (held bool, err error) {
	switch status, err := readStatus(reply, -1, 5); {
	case err != nil:
		return false, err
	case status == -1:
		return false, keepalive.Replaced
	case status == 0:
		return false, keepalive.Gone
	default:
		return status == 1 || status == renewedInPart || status == renewedInPartBesidePermits, nil
	}
}

// renewRest repeats a renewal that was made in part. Why no outcome: if the repetition fails, the next renewal will be made in
// part too, and be repeated.
func (r OneRedis) renewRest(h *Hold, keys []string) {
	c := transport.NewCommand(renewScript, keys, h.ID, Milliseconds(h.TTL))
	c.Done = func(*transport.Command) {}
	r.Exec.SubmitRenewals([]*transport.Command{c})
}

// renewed returns the keys of the first command of a renewal, see lua/lock/renew.lua.
func (h *Hold) renewed() []string {
	if h.Shares && !h.Compact {
		return h.shared()
	}
	return []string{h.Keys.Lock}
}

// shared returns the keys of the renewal of a share. Why slots only for permits: in a Cluster, a script runs while its slot moves
// only if all its keys exist.
func (h *Hold) shared() []string {
	if h.Permits > 0 {
		return h.withSlots()
	}
	return []string{h.Keys.Lock, h.Keys.ShareExpiries()}
}

// withSlots returns the keys of the renewal of a hold beside permits.
func (h *Hold) withSlots() []string {
	return []string{h.Keys.Lock, h.Keys.ShareExpiries(), h.Keys.Slots()}
}

// Raise implements [Strategy].
func (r OneRedis) Raise(ctx context.Context, h *Hold, token int64) (bool, error) {
	reply, err := r.Exec.DoWithAck(ctx, h.Ack, raiseScript, []string{h.Keys.Lock, r.TokenKeys.Of(h.Keys.Lock), h.Keys.ShareExpiries(), h.Keys.Slots()},
		h.ID, token)
	if err != nil {
		return false, err
	}
	status, err := readStatus(reply, 0, 1)
	return status == 1, err
}

// Subscribe implements [Strategy]: to broadcasts, which a Mutex or Redisson publishes when it unlocks.
func (r OneRedis) Subscribe(k Keys) Subscription {
	return r.Subs.Subscribe(k.Channel, "")
}

// Bar implements [Strategy]. The command is sent until Redis confirms it.
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

// deploymentMemory is how long a deployment ID outlives its last use. It must be longer than any wait.
const deploymentMemory = 24 * time.Hour

// DeploymentID implements [Strategy]. The ID is kept in the slot of the lock. Why not what the server tells of itself: the ID lives
// exactly as long as the state of the lock, through restarts, failovers and moves of slots. And it needs no rights that the
// lock does not need.
func (r OneRedis) DeploymentID(ctx context.Context, k Keys) (string, error) {
	reply, err := r.Exec.Do(ctx, deploymentIDScript, []string{k.Deployment()},
		r.IDs.Next(), Milliseconds(deploymentMemory))
	if err != nil {
		return "", err
	}
	d := newDecoder(reply)
	id := d.Text()
	return id, d.End()
}
