package script

import (
	"context"
	"math"
	"strings"

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
	ClientNumber    string // see internal/transport/wake_one.go
	ClientNumberArg any    // ClientNumber as an argument of scripts
	PublishVerb     string // PUBLISH or SPUBLISH, see lua/lock/publish.lua
	PublishVerbArg  any    // PublishVerb as an argument of scripts
	OfRedlock       bool   // true for one of several servers, see releaseMemories
	PublishRefused  func() // called if Redis does not let this user publish; waiters poll then
}

// GrantChannel returns the channel of this client for a lock with a queue. Each message on it has the hold ID of one waiter as its
// address.
func (i *Instance) GrantChannel(k Keys) string { return k.Channel + ":" + i.IDs.Client }

// queueKeys returns the keys of queue_common.lua, and those that come between them and the last one.
func (i *Instance) queueKeys(k Keys, more ...string) []string {
	keys := []string{k.Lock, i.TokenKeys.Of(k.Lock), k.ShareExpiries(), k.ExclusiveQueue(), k.SharedQueue(), k.Waiters()}
	return append(append(keys, more...), k.Slots())
}

// queueArgs returns the arguments of queue_common.lua and those that come after them.
func (i *Instance) queueArgs(k Keys, more ...any) []any {
	return append([]any{k.Channel, i.PublishVerb}, more...)
}

// WakeNextIfFree removes the clients in leave from the set of waiting clients. Then it wakes the next client of the set if the
// lock is free. It is idempotent: to wake a client twice does no harm.
func (i *Instance) WakeNextIfFree(ctx context.Context, lock, set string, leave ...any) error {
	_, err := i.Exec.Do(ctx, wakeNextIfFreeScript, []string{lock, set}, append([]any{i.PublishVerb}, leave...)...)
	return err
}

// Heartbeat returns the command that keeps the places of holds with these IDs in the queue of a lock for PlaceTTL more.
func (i *Instance) Heartbeat(k Keys, ids ...any) *transport.Command {
	return transport.NewCommand(queueHeartbeatScript, i.queueKeys(k), i.queueArgs(k, ids...)...)
}

// ReadHeartbeat returns what the reply to a heartbeat of so many places says of the lock. ahead has the number of waiters before each
// place, or -1 if the waiter has to send its request again.
func ReadHeartbeat(reply any, places int) (state WaitState, ahead []int, err error) {
	d := newDecoder(reply)
	state.HolderTTL, state.LastToken, state.Broadcasts = d.TTL(), d.Int(0, TokenLimit), d.Bool()
	for range places {
		ahead = append(ahead, int(d.Int(-1, math.MaxInt32)))
	}
	state.Holder = d.Text()
	return state, ahead, d.End()
}

// RunID returns the run ID of the server process. It returns "" if the server does not tell it. The script does not touch the
// key, which only matters for the rights of the user.
func (i *Instance) RunID(ctx context.Context, key string) (string, error) {
	reply, err := i.Exec.Do(ctx, serverRunIDScript, []string{key})
	if err != nil {
		return "", err
	}
	d := newDecoder(reply)
	id := d.Text()
	return strings.TrimSpace(id), d.End()
}
