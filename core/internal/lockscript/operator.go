package lockscript

import (
	"context"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// Force takes the lock from its holders, of whatever strategy. It returns true if the lock was held. It is idempotent by
// its id.
func (i *Instance) Force(ctx context.Context, k Keys, id string) (bool, error) {
	// Bounded, so that no repetition comes later than Redis remembers the first.
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

// State returns the reply of lua/inspect.lua, which has at most that many shares and waiters.
func (i *Instance) State(ctx context.Context, k Keys, limit int) (reply any, err error) {
	err = transport.Retry(ctx, 0, transport.Transient, func() (err error) {
		reply, err = i.Exec.Do(ctx, inspectScript,
			[]string{k.Lock, k.ShareExpiries(), k.ExclusiveQueue(), k.SharedQueue(), k.Waiters()}, k.Channel, i.PublishVerb, limit)
		return err
	})
	return reply, err
}
