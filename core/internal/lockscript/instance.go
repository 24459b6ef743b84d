package lockscript

import (
	"context"
	"strings"

	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/pubsub"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// Instance is one Redis as the scripts of locks use it: a server, a Sentinel group or a Cluster.
type Instance struct {
	Exec            *transport.Executor
	Subs            *pubsub.Subscriptions
	IDs             *IDs
	Now             clock.Clock
	ClientNumber    string // see internal/pubsub/wake_one.go
	ClientNumberArg any    // the same, as an argument of scripts
	PublishVerb     string // PUBLISH or SPUBLISH, see lua/publish.lua
	PublishVerbArg  any    // the same, as an argument
	PublishRefused  func() // called if Redis does not let this user publish
}

// queueArgs returns the arguments of queue_common.lua and those that come after them.
func (i *Instance) queueArgs(k Keys, more ...any) []any {
	return append([]any{k.Channel, Milliseconds(TokenMemory), Milliseconds(PlaceTTL), i.PublishVerb}, more...)
}

// WakeNextIfFree wakes the next client of the set of waiting clients, if the lock is free. The clients in leave are taken
// out of the set first.
func (i *Instance) WakeNextIfFree(ctx context.Context, lock, set string, leave ...any) error {
	_, err := i.Exec.Do(ctx, wakeNextIfFreeScript, []string{lock, set}, append([]any{i.PublishVerb}, leave...)...)
	return err
}

// Heartbeat returns the command that keeps the places of these holds in the queue of a lock.
func (i *Instance) Heartbeat(k Keys, ids ...any) *transport.Command {
	return transport.NewCommand(QueueHeartbeatScript, k.queueKeys(), i.queueArgs(k, ids...)...)
}

// RunID returns what identifies the server process. The key decides on nothing but the rights of the user.
func (i *Instance) RunID(ctx context.Context, key string) (string, error) {
	reply, err := i.Exec.Do(ctx, serverRunIDScript, []string{key})
	id, _ := reply.(string)
	return strings.TrimSpace(id), err
}
