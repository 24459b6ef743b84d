package cronlock

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrTimeout is the cause with which the context of a run ends that has taken longer than [WithTimeout].
var ErrTimeout = errors.New("holdfast: cronlock: the run takes longer than WithTimeout")

// limit ends the context of a run at its [WithTimeout], and calls overrun if cancel was not called for the whole grace
// after that.
func (j *job) limit(ctx context.Context, overrun func()) (limited context.Context, cancel context.CancelFunc) {
	if j.config.timeout == 0 {
		return context.WithCancel(ctx)
	}
	limited, end := context.WithTimeoutCause(ctx, j.config.timeout, ErrTimeout)
	timer := time.AfterFunc(j.config.timeout+j.config.ZombieGrace, overrun)
	return limited, func() {
		timer.Stop()
		end()
	}
}

// outlivesLease reports whether the function runs in this process without a lease, which was lost or given up. Such a
// process must not claim ticks, because it would skip them, though other replicas can run them.
func (j *job) outlivesLease() bool {
	lease := j.current.Load()
	return lease != nil && lease.Context().Err() != nil
}

// errHere is behind a tick that meets a run in its own process.
var errHere = fmt.Errorf("%w: in this process", ErrOverlap)

// enter lets no other run of the job start in this process until leave is called: whatever becomes of the lease, the
// function may go on. It waits for so long.
func (j *job) enter(ctx context.Context, limit time.Duration) (leave func(), err error) {
	leave = func() { <-j.slot }
	select {
	case j.slot <- struct{}{}:
		return leave, nil
	default:
	}
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		select {
		case j.slot <- struct{}{}:
			return leave, nil
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return nil, errHere
}
