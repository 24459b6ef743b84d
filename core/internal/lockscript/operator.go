package lockscript

import (
	"context"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// Force takes the lock from its holders, of whatever strategy. It returns true if the lock was held. It is idempotent: another
// call with the same id returns the same, for AbandonMemory.
func (i *Instance) Force(ctx context.Context, k Keys, id string) (bool, error) {
	// The timeout lets no repetition arrive after Redis has forgotten the first one.
	bounded, cancel := context.WithTimeout(ctx, transport.AnswerTimeout)
	defer cancel()
	done := k.Released("forced:" + id)
	var reply any
	err := transport.RetryUntilAnswered(bounded, func(ctx context.Context) (err error) {
		reply, err = i.Exec.Do(ctx, ForceScript, k.queueKeys(done), i.queueArgs(k, Milliseconds(AbandonMemory))...)
		return err
	})
	return reply == int64(1), err
}

// State returns the reply of lua/inspect.lua, which has at most limit shares and limit waiters.
func (i *Instance) State(ctx context.Context, k Keys, limit int) (reply any, err error) {
	err = transport.Retry(ctx, 0, transport.Transient, func() (err error) {
		reply, err = i.Exec.Do(ctx, inspectScript,
			[]string{k.Lock, k.ShareExpiries(), k.ExclusiveQueue(), k.SharedQueue(), k.Waiters()}, k.Channel, i.PublishVerb, limit)
		return err
	})
	return reply, err
}
