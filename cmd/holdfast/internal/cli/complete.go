package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// recordPatience is how long after the end of its lease the program continues to record a run. It can be recorded after its
// lease as long as no other run has begun, and a server that restarts may take a minute.
const recordPatience = time.Minute

// recordInterval is how often the program looks whether a run is recorded. The library sends the record meanwhile.
const recordInterval = 200 * time.Millisecond

// complete records that a run has ended. While Redis does not confirm that, it continues until recordPatience after the lease,
// or until a signal interrupts the supervisor. Without the record another run follows, or an operator must find out.
func complete(env *environment, once *core.Once, attempt *core.Attempt, value []byte) error {
	limit := attempt.ValidUntil()
	if now := time.Now(); limit.Before(now) {
		limit = now
	}
	limit = limit.Add(recordPatience)
	err := attempt.Complete(unlockContext(env), value)
	if err == nil || isFinal(err) {
		return err
	}
	if env.flags.Verbose {
		fmt.Fprintf(env.stderr, "holdfast: the end of the run is not recorded yet, retrying until %s\n", limit.Format(time.TimeOnly))
	}
	ctx, cancel := context.WithDeadline(env.ctx, limit)
	defer cancel()
	return awaitRecord(ctx, once, attempt.Token(), err)
}

// isFinal reports whether the library does not continue to send the completion of an attempt after an error, or sends it in vain.
func isFinal(err error) bool {
	for _, final := range []error{
		core.ErrStale, core.ErrNotHeld, core.ErrValueTooLarge, core.ErrWrongType, core.ErrPermission,
		core.ErrMisconfigured, core.ErrClosed,
	} {
		if errors.Is(err, final) {
			return true
		}
	}
	return false
}

// awaitRecord waits until the record says that the attempt with a token is completed. It returns [core.ErrStale] if another
// attempt has followed, and the error that is given when ctx ends.
func awaitRecord(ctx context.Context, once *core.Once, token int64, unconfirmed error) error {
	for ctx.Err() == nil {
		record, err := once.Peek(ctx)
		switch {
		case err == nil && record.Token > token:
			return fmt.Errorf("%w: another run has begun", core.ErrStale)
		case err == nil && record.Token == token && record.State == core.StateCompleted:
			return nil
		}
		select {
		case <-time.After(recordInterval):
		case <-ctx.Done():
		}
	}
	return unconfirmed
}
