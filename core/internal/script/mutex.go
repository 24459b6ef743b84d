package script

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

const (
	// tokenMemory is how long Redis remembers the last token after the last grant, see lua/lock/token.lua. A token is the server's time
	// in microseconds, or one more than the last. So the memory only matters after the server's clock was set back.
	tokenMemory = 2 * time.Hour
	// AbandonMemory is how long Redis refuses requests of a hold that arrive after its end. Only a hold with an unanswered
	// request has such a memory. ForceUnlock has one too, so that a repetition returns the same.
	AbandonMemory = 10 * time.Minute
)

// errRestarted is a refusal that does not show whether the lock is held. It is temporary: the request may be repeated.
var errRestarted = transport.WithOutcome(errors.New("server restarted recently and may have lost the lock"), transport.NotExecuted)

// Mutex is the [Strategy] of a lock with one owner and without order between processes.
type Mutex struct {
	*Instance
	RestartDelay time.Duration // for which a server grants no free locks after it has started; 0 for none
}

// Name implements [Strategy].
func (Mutex) Name() string { return "mutex" }

// Abilities implements [Strategy].
func (m Mutex) Abilities() Abilities { return Abilities{WakeOne: m.Instance, HandsOver: true} }

// Acquire implements [Strategy]. If another strategy holds the lock, Acquire requests it as a [Queue].
func (m Mutex) Acquire(ctx context.Context, h *Hold, want Wanted) (Result, error) {
	c, tokenKey, client := new(transport.Command), m.TokenKeys.arg(h.Keys.Lock), any("")
	if want.Registration {
		client = m.ClientNumberArg
	}
	optional := [...]any{h.idArg(), Milliseconds(h.MinHold), Milliseconds(m.RestartDelay), client, want.Woken, h.ParentID, want.Tokens}
	if n := len(trimDefaults(optional[:])); n == 0 {
		c.Init(acquireScript, 3, h.Args.lock, tokenKey, h.Args.released, h.ownerArg(), ttlArg(h.TTL))
	} else {
		c.Init(acquireScript, 4, h.Args.lock, tokenKey, h.Args.released, h.Keys.WaitingClients, h.ownerArg(), ttlArg(h.TTL))
		c.Args = append(c.Args, optional[:n]...)
	}
	c.Ack = h.Ack
	err := m.Exec.Run(ctx, c)
	h.countRepeated(c)
	if m.TokenKeys.learnSlots(err, h.Keys.Lock, tokenKey) {
		return m.Acquire(ctx, h, want)
	}
	if err != nil {
		return Result{}, err
	}
	result, status, err := readMutexReply(c.Reply)
	switch {
	case err != nil:
		return Result{}, err
	case status == otherStrategy && m.OfRedlock && m.hasOwner(ctx, h):
		return Result{Refused: upgradeRefused}, nil
	case status == otherStrategy:
		return m.asQueued().Acquire(ctx, h, Wanted{})
	case status == restarted:
		return Result{}, fmt.Errorf("%w: for %v more it grants no locks", errRestarted, result.HolderTTL)
	}
	result.Unregistered = (status == granted || status == grantedTokens) && want.Registration
	return result, nil
}

// The statuses with which the replies of acquire.lua and queue_acquire.lua begin.
const (
	grantedTokens = 2 // of acquire.lua: with tokens for further owners
	granted       = 1
	refused       = 0
	wasReleased   = -1
	otherStrategy = -2
	upgrade       = -2 // of queue_acquire.lua
	restarted     = -3
)

// maxTokens bounds the tokens of one grant: more than any request wants.
const maxTokens = 10000

// readMutexReply returns what a reply of acquire.lua says, and its status. The status is 0 for a grant in the compact state.
func readMutexReply(reply any) (result Result, status int64, err error) {
	if _, compact := reply.(int64); compact {
		token, err := readStatus(reply, leastToken, TokenLimit)
		return Result{Granted: err == nil, Grant: Grant{Token: token, Compact: true}}, 0, err
	}
	d := newDecoder(reply)
	switch status = d.Int(restarted, grantedTokens); status {
	case grantedTokens:
		result.Granted, result.Token = true, d.Token()
		result.Reserved, result.OthersWait = int(d.Int(0, maxTokens)), d.Bool()
	case granted:
		result.Granted, result.Token = true, d.Token()
		flags := d.Int(0, 3)
		result.TokenCommitted, result.ByParent = flags&1 != 0, flags&2 != 0
	case refused:
		result.HolderTTL, result.Committed = d.TTL(), d.Bool()
		result.Holder = d.Text()
	case wasReleased, otherStrategy:
		d.Int(0, 0)
		result.HoldReleased = status == wasReleased
	case restarted:
		result.HolderTTL = d.TTL()
	}
	if err := d.End(); err != nil {
		return Result{}, 0, err
	}
	return result, status, nil
}

// Subscribe implements [Strategy]: to broadcasts and to the number of this client, see internal/transport/subscriptions.go.
func (m Mutex) Subscribe(k Keys) Subscription {
	return m.Subs.SubscribeAsClient(k.Channel, k.Lock, k.WaitingClients)
}

// hasOwner returns true if the owner of the hold has the lock by another strategy, as far as Redis tells. One server of a Redlock asks,
// because a [Queue] would grant a re-entry there, whose token is that of the other strategy, and cannot be committed.
func (m Mutex) hasOwner(ctx context.Context, h *Hold) bool {
	if h.Owner == h.ID {
		return false // it is new
	}
	s, err := m.State(ctx, h.Keys, MaxPermits)
	return err == nil && slices.ContainsFunc(s.Holders, func(held Holder) bool { return held.Owner == h.Owner })
}

// asQueued returns the strategy that can request a lock that another strategy holds. The holder may be the same owner.
func (m Mutex) asQueued() Queue {
	return Queue{Instance: m.Instance, Mode: "fair"}
}

// Release implements [Strategy]. The script wakes one waiting client. If another strategy holds the lock, Release releases
// the hold as a [Queue].
func (m Mutex) Release(ctx context.Context, h *Hold, what ReleaseReason) (bool, error) {
	return m.release(ctx, h, what, h.Compact && !h.Silent)
}

// release is Release of a hold that is, or is not, expected in the compact state.
func (m Mutex) release(ctx context.Context, h *Hold, what ReleaseReason, compact bool) (bool, error) {
	found, missing := m.releaseMemoryArgs(h, what)
	c, verb := new(transport.Command), m.PublishVerbArg
	if h.Silent {
		verb = ""
	}
	optional := [...]any{h.idArg(), found, what == NeverHeld, missing}
	if n := len(trimDefaults(optional[:])); n == 0 && compact {
		m.initCompactRelease(c, releaseScript, h)
	} else {
		c.Init(releaseScript, 3, h.Args.lock, h.Args.released, h.Keys.WaitingClients, h.ownerArg(), verb)
		c.Args = append(c.Args, optional[:n]...)
	}
	if err := h.sendRelease(ctx, m.Exec, c); err != nil {
		return false, err
	}
	switch status, err := readStatus(c.Reply, 0, notCompact); {
	case err != nil:
		return false, err
	case status == 0:
		return m.wasReleased(ctx, h)
	case status == 3:
		m.PublishRefused()
	case status == 4:
		return m.asQueued().Release(ctx, h, what)
	case status == notCompact:
		return m.release(ctx, h, what, false)
	}
	return true, nil
}

// Commit writes the token of a majority of a Redlock to a hold of this server. If regrant is true and the server has lost the
// hold, Commit grants it anew. It returns false if the hold is not there, or if another owner has the lock.
func (m Mutex) Commit(ctx context.Context, h *Hold, token int64, regrant bool) (bool, error) {
	grant := 0
	if regrant {
		grant = 1
	}
	reply, err := m.Exec.Do(ctx, redlockCommitScript, []string{h.Keys.Lock, m.TokenKeys.Of(h.Keys.Lock), h.Released},
		h.Owner, h.ID, Milliseconds(h.TTL), token, Milliseconds(h.MinHold), grant)
	if err != nil {
		return false, err
	}
	status, err := readStatus(reply, 0, 1)
	return status == 1, err
}
