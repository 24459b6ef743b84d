package lockscript

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

const (
	// TokenMemory is how long Redis remembers the last token of a name. A token is the server's time in microseconds, or one
	// more than the last. So the memory only matters after the server's clock was set back. Then it matters for names that
	// were granted since the time to which the clock was set.
	TokenMemory = 2 * time.Hour
	// ReleaseMemory is how long Redis remembers the end of a hold. A repeated release within that time gets the true answer.
	ReleaseMemory = 15 * time.Second
	// AbandonMemory is the same for a hold of which a request may arrive late and must be refused, and for ForceUnlock. It
	// may be longer than ReleaseMemory because such holds are rare.
	AbandonMemory = 10 * time.Minute
)

// Refusals of acquire.lua and acquire_all.lua that do not tell whether the lock is held.
var (
	// errRestarted is temporary: the request may be repeated.
	errRestarted = transport.WithOutcome(errors.New("server restarted recently and may have lost the lock"), transport.NotExecuted)
	// ErrOtherStrategy is the error of a MutexBatch whose script cannot grant one of the locks. The locks may be acquired one
	// by one instead.
	ErrOtherStrategy = transport.WithOutcome(errors.New("held by another strategy than Mutex"), transport.Rejected)
)

// Durations as arguments of scripts, in ms.
var (
	tokenMemoryArg   any = Milliseconds(TokenMemory)
	releaseMemoryArg any = Milliseconds(ReleaseMemory)
	// AbandonMemoryArg is AbandonMemory.
	AbandonMemoryArg any = Milliseconds(AbandonMemory)

	lastTTL atomic.Pointer[ttlText] // nil before the first
)

// ttlText is a TTL and its argument.
type ttlText struct {
	ttl time.Duration
	arg any
}

// ttlArg returns a TTL as an argument of scripts. It keeps the last one, because mostly all TTLs of a process are the same.
func ttlArg(ttl time.Duration) any {
	last := lastTTL.Load()
	if last == nil || last.ttl != ttl {
		last = &ttlText{ttl, Milliseconds(ttl)}
		lastTTL.Store(last)
	}
	return last.arg
}

// Mutex is the [Strategy] of a lock with one owner and without order between processes.
type Mutex struct {
	OneRedis
	RestartDelay time.Duration // for which a server grants no free locks after it has started; 0 for none
}

// Acquire implements [Strategy]. If another strategy holds the lock, Acquire requests it as a [Queue].
func (m Mutex) Acquire(ctx context.Context, h *Hold) (Result, error) {
	c := new(transport.Command)
	c.Init(acquireScript, 4, h.ScriptArgs.Lock, h.ScriptArgs.Token, h.ScriptArgs.released, h.ScriptArgs.WaitingClients,
		h.ownerArg(), h.ScriptArgs.id, ttlArg(h.TTL), tokenMemoryArg, Milliseconds(h.MinHold), Milliseconds(m.RestartDelay))
	if h.RegistersClient {
		c.Args = append(c.Args, m.ClientNumberArg, h.Woken)
	}
	if h.ParentID != "" {
		if !h.RegistersClient {
			c.Args = append(c.Args, "", 0)
		}
		c.Args = append(c.Args, h.ParentID)
	}
	c.Ack = h.Ack
	err := m.Exec.Run(ctx, c)
	h.countRepeated(c)
	if err != nil {
		return Result{}, err
	}
	if len(c.List) < 2 {
		return Result{}, Unexpected(c.List)
	}
	switch c.List[0] {
	case 1:
		before := c.List[len(c.List)-1] // flags, see lua/acquire.lua
		return Result{Granted: true, Token: c.List[1], TokenCommitted: before&1 != 0, ByParent: before&2 != 0}, nil
	case 0:
		left := time.Duration(c.List[1]) * time.Millisecond
		return Result{TokenCommitted: len(c.List) > 2 && c.List[2] == 1, WaitState: WaitState{HolderTTL: left}}, nil
	case -2:
		h.RegistersClient = false // queue_acquire.lua does not register waiting clients
		return m.asQueued().Acquire(ctx, h)
	case -3:
		return Result{}, fmt.Errorf("%w: for %v more it grants no locks", errRestarted,
			time.Duration(c.List[1])*time.Millisecond)
	default:
		return Result{HoldReleased: true}, nil
	}
}

// Subscribe implements [Strategy]: to broadcasts and to the number of this client, see internal/pubsub/wake_one.go.
func (m Mutex) Subscribe(k Keys) Subscription {
	return m.Subs.SubscribeAsClient(k.Channel, k.Lock, k.WaitingClients)
}

// SubscribeIfActive implements [Strategy].
func (m Mutex) SubscribeIfActive(k Keys) Subscription {
	if sub := m.Subs.SubscribeAsClientIfActive(k.Channel, k.Lock, k.WaitingClients); sub != nil {
		return sub
	}
	return nil
}

// asQueued returns the strategy that can request a lock that another strategy holds. The holder may be the same owner.
func (m Mutex) asQueued() Queue {
	return Queue{OneRedis: m.OneRedis, Mode: "fair"}
}

// Release implements [Strategy]. The script wakes one waiting client. If another strategy holds the lock, Release releases
// the hold as a [Queue].
func (m Mutex) Release(ctx context.Context, h *Hold, what ReleaseReason) (bool, error) {
	found, missing := h.ReleaseMemories(what)
	abandoned := 0
	if what == NeverHeld {
		abandoned = 1
	}
	c := new(transport.Command)
	c.Init(releaseScript, 3, h.ScriptArgs.Lock, h.ScriptArgs.released, h.ScriptArgs.WaitingClients,
		h.ownerArg(), h.ScriptArgs.id, found, abandoned, m.PublishVerbArg)
	if missing != found {
		c.Args = append(c.Args, missing)
	}
	if err := m.Exec.Run(ctx, c); err != nil {
		return false, err
	}
	switch c.Reply {
	case int64(4):
		return m.asQueued().Release(ctx, h, what)
	case int64(3):
		m.PublishRefused()
	}
	return c.Reply != int64(0), nil
}

// Commit writes the token of a majority of a Redlock to a hold of this server. If regrant is true and the server has lost the
// hold, Commit grants it anew. It returns false if the hold is not there, or if another owner has the lock.
func (m Mutex) Commit(ctx context.Context, h *Hold, token int64, regrant bool) (bool, error) {
	grant := 0
	if regrant {
		grant = 1
	}
	reply, err := m.Exec.Do(ctx, redlockCommitScript, []string{h.Keys.Lock, h.Keys.Token, h.Released},
		h.Owner, h.ID, Milliseconds(h.TTL), token, Milliseconds(TokenMemory), Milliseconds(h.MinHold), grant)
	return reply == int64(1), err
}
