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
	force := func(ctx context.Context) (err error) {
		reply, err = i.Exec.Do(ctx, forceScript, i.queueKeys(k, done, k.Forced()), i.queueArgs(k, Milliseconds(AbandonMemory))...)
		return err
	}
	tokenKey := i.TokenKeys.Arg(k.Lock)
	err := transport.RetryUntilAnswered(bounded, force)
	if i.TokenKeys.LearnSlots(err, k.Lock, tokenKey) {
		err = transport.RetryUntilAnswered(bounded, force)
	}
	return reply == int64(1), err
}
