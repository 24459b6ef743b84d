package asynqlock

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// inside is a run behind [Once] as the context of its handler knows it: [core.Complete], [core.Release] and [core.Hold] act on
// it.
type inside struct{ run *run }

// Attempt implements [seal.Run].
func (i inside) Attempt() any { return i.run.attempt }

// KeyHash implements [seal.Run].
func (i inside) KeyHash() string { return i.run.hash }

// Declare implements [seal.Run]. If Redis does not confirm it, what was said counts all the same when the handler ends.
func (i inside) Declare(ctx context.Context, d seal.Disposition, reason string) error {
	r := i.run
	if r.client == nil {
		return core.ErrNotGuarded // Exclusive keeps no records
	}
	r.word.Set(d, reason)
	if r.attempt == nil {
		return fmt.Errorf("%w: the task runs without a record", core.ErrUnavailable)
	}
	return seal.RunFrom(r.attempt.Context()).Declare(ctx, d, reason)
}

// Said implements [seal.Run].
func (i inside) Said() (seal.Disposition, string) { return i.run.word.Said() }

// Degraded returns true if ctx is that of a task which runs without Redis, see [FailOpen]. There is no fencing token
// then.
func Degraded(ctx context.Context) bool {
	for r := runFrom(ctx); r != nil; r = r.around {
		if r.lease == nil {
			return true
		}
	}
	return false
}
