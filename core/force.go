package core

import (
	"context"
	"fmt"
)

// ForceUnlock takes the lock of that name from whoever holds it, of whatever strategy, and reports whether
// somebody did. It does not stop the holder: that one learns of it at its next renewal, a third of its TTL
// later at most, and may work on until then beside its successor. The successor's fencing token is greater,
// so a resource that checks tokens is safe.
func (c *Client) ForceUnlock(ctx context.Context, name string) (bool, error) {
	if err := checkName(c.prefix, name); err != nil {
		return false, err
	}
	if !c.tasks.begin() {
		return false, ErrClosed
	}
	defer c.tasks.end()
	// Bounded, so that no repetition comes later than Redis remembers the first.
	bounded, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	k := newKeys(c.prefix + name)
	done := k.released("forced:" + c.newID())
	var reply any
	err := insist(bounded, func(ctx context.Context) (err error) {
		reply, err = c.exec.do(ctx, forceScript, k.line(done), c.lineArgs(k, milliseconds(abandonMemory))...)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("holdfast: force lock %q: %w", name, failure(ctx, k.lock, err))
	}
	return reply == int64(1), nil
}
