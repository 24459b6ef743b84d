package script

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// Instance is one Redis as the scripts of locks use it: a server, a Sentinel group or a Cluster. It is not changed after its
// fields are set, so it is safe for concurrent use.
type Instance struct {
	Exec            *transport.Executor
	Subs            *transport.Subscriptions
	IDs             *IDs
	TokenKeys       TokenKeys
	Now             keepalive.Clock
	ClientNumberArg any    // as an argument of scripts, see internal/transport/subscriptions.go
	PublishVerbArg  any    // PUBLISH or SPUBLISH, as an argument of scripts, see lua/lock/publish.lua
	OfRedlock       bool   // true for one of several servers, see releaseMemories
	PublishRefused  func() // called if Redis does not let this user publish; waiters poll then
}

// PassTurn removes the clients in leave from the set of waiting clients, and wakes the next one unless a client that leaves was
// not woken before, see lua/lock/pass_turn.lua. It is idempotent: to wake a client twice does no harm.
func (i *Instance) PassTurn(ctx context.Context, lock, set string, leave ...any) error {
	_, err := i.Exec.Do(ctx, passTurnScript, []string{lock, set}, append([]any{i.PublishVerbArg}, leave...)...)
	return err
}

// RunID returns the run ID of the server process. It returns "" if the server does not return it. The script does not touch the
// key, which only matters for the rights of the user.
func (i *Instance) RunID(ctx context.Context, key string) (string, error) {
	id, err := readText(i.Exec.Do(ctx, serverRunIDScript, []string{key}))
	return strings.TrimSpace(id), err
}

// Abilities implements [Strategy].
func (*Instance) Abilities() Abilities { return Abilities{} }

// Renew implements [Strategy]. A second command follows with the keys of shares if the reply asks for them.
func (i *Instance) Renew(ctx context.Context, h *Hold, ttl time.Duration) (bool, error) {
	reply, err := i.Exec.DoWithAck(ctx, h.Ack, renewScript, h.renewed(), h.ID, Milliseconds(ttl))
	for err == nil && h.repeated(reply) != nil {
		reply, err = i.Exec.DoWithAck(ctx, h.Ack, renewScript, h.repeated(reply), h.ID, Milliseconds(ttl))
	}
	if err != nil {
		return false, err
	}
	status, err := readStatus(reply, -1, 5)
	return status == 1, err
}

// Replies to a renewal that must be repeated with the keys of shares. Not always with these, because in a Cluster, a script
// with one key runs even while its slot moves, see lua/lock/renew.lua.
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
func (i *Instance) RenewAll(renewals []*Renewal) {
	commands := make([]*transport.Command, len(renewals))
	for n, renewal := range renewals {
		commands[n] = i.RenewalCommand(renewal, renewal.Done)
	}
	i.Exec.SubmitRenewals(commands)
}

// RenewalCommand returns the command of a renewal, which calls done with the outcome, see keepalive.Renewal.
func (i *Instance) RenewalCommand(renewal *Renewal, done func(sentAt keepalive.Instant, held bool, err error)) *transport.Command {
	return i.renewalWith(renewal.Hold.renewed(), renewal, done)
}

// renewalWith returns the command of a renewal with these keys. If the reply asks for more keys, the renewal is repeated with
// them: a lock may lose its compact state, and then get permits.
func (i *Instance) renewalWith(keys []string, renewal *Renewal, done func(sentAt keepalive.Instant, held bool, err error)) *transport.Command {
	c := transport.NewCommand(renewScript, keys, renewal.Hold.ID, Milliseconds(renewal.Hold.TTL))
	c.Ack = renewal.Hold.Ack
	c.OnSend = func() { renewal.Sent.Store(true) }
	c.Done = func(c *transport.Command) {
		if more := renewal.Hold.repeated(c.Reply); len(more) > len(keys) {
			if c.Reply == sharedHold || c.Reply == sharedHoldBesidePermits {
				i.Exec.SubmitRenewals([]*transport.Command{i.renewalWith(more, renewal, done)})
				return
			}
			i.renewRest(renewal.Hold, more)
		}
		held, err := readRenewal(c.Reply)
		if c.Err == nil && keepalive.IsCause(err) && !i.OfRedlock {
			i.findForced(renewal.Hold, err, func(cause error) { done(c.SentAt, false, cause) })
			return
		}
		done(c.SentAt, held && c.Err == nil, cmp.Or(c.Err, err))
	}
	return c
}

// findForced calls then with [keepalive.Forced] if a hold that Redis does not have any more was force-released, and otherwise, or if
// Redis does not tell, with the cause that is known. The lease ends by its deadline, however long Redis takes.
func (i *Instance) findForced(h *Hold, known error, then func(cause error)) {
	c := transport.NewCommand(wasForcedScript, []string{h.Keys.Forced()}, h.ID)
	c.Done = func(c *transport.Command) {
		if forced, err := done(c.Reply, c.Err); err == nil && forced {
			known = keepalive.Forced
		}
		then(known)
	}
	i.Exec.SubmitRenewals([]*transport.Command{c})
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

// renewRest repeats a renewal that was made in part. There is no outcome because if the repetition fails, the next renewal will
// be made in part too, and be repeated.
func (i *Instance) renewRest(h *Hold, keys []string) {
	c := transport.NewCommand(renewScript, keys, h.ID, Milliseconds(h.TTL))
	c.Done = func(*transport.Command) {}
	i.Exec.SubmitRenewals([]*transport.Command{c})
}

// renewed returns the keys of the first command of a renewal, see lua/lock/renew.lua.
func (h *Hold) renewed() []string {
	if h.Shares && !h.Compact {
		return h.shared()
	}
	return []string{h.Keys.Lock}
}

// shared returns the keys of the renewal of a share. The slots come only for permits, because in a Cluster, a script runs while
// its slot moves only if all its keys exist.
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
func (i *Instance) Raise(ctx context.Context, h *Hold, token int64) (bool, error) {
	keys := []string{h.Keys.Lock, i.TokenKeys.Of(h.Keys.Lock), h.Keys.ShareExpiries(), h.Keys.Slots()}
	return done(i.Exec.DoWithAck(ctx, h.Ack, raiseScript, keys, h.ID, token))
}

// Subscribe implements [Strategy]: to broadcasts, which a Mutex or Redisson publishes when it unlocks.
func (i *Instance) Subscribe(k Keys) Subscription {
	return i.Subs.Subscribe(k.Channel, "")
}

// Bar implements [Strategy]. The command is sent until Redis confirms it.
func (i *Instance) Bar(h *Hold) {
	released := []string{h.Released}
	i.Exec.PendingOf(h.Keys.Lock).Add(&transport.PendingCommand{
		Send: func(ctx context.Context) error {
			_, err := i.Exec.Do(transport.Detached(ctx), barScript, released, Milliseconds(AbandonMemory))
			return err
		},
		Until: i.Now().Add(AbandonMemory),
	})
}

// Pending implements [Strategy].
func (i *Instance) Pending(h *Hold) *transport.Pending { return i.Exec.PendingOf(h.Keys.Lock) }

// deploymentMemory is how long a deployment ID outlives its last use. It must be longer than any wait.
const deploymentMemory = 24 * time.Hour

// DeploymentID implements [Strategy]. The ID is kept in the slot of the lock. The server's own INFO would not do, because the
// ID lives exactly as long as the state of the lock, through restarts, failovers and moves of slots. And it needs no rights
// that the lock does not need.
func (i *Instance) DeploymentID(ctx context.Context, k Keys) (string, error) {
	return readText(i.Exec.Do(ctx, deploymentIDScript, []string{k.Deployment()}, i.IDs.Next(), Milliseconds(deploymentMemory)))
}
