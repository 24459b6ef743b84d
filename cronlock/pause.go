package cronlock

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// pauseTime is how long a job stays paused at most: nothing is kept in Redis for ever.
const pauseTime = 10 * 365 * 24 * time.Hour

// Pause keeps a job from running on all replicas, from the next tick on, until [Resume]. A run in progress goes on.
// That it was paused before is no error. [RunNow] works all the same. It lasts ten years at most.
func Pause(ctx context.Context, locks *core.Client, name string) error {
	flag, err := pauseOf(locks, name)
	if err != nil {
		return err
	}
	_, err = flag.Do(ctx, func(context.Context) ([]byte, error) { return nil, nil })
	return err
}

// Resume lets a paused job run again. That it was not paused is no error.
func Resume(ctx context.Context, locks *core.Client, name string) error {
	flag, err := pauseOf(locks, name)
	if err != nil {
		return err
	}
	return flag.Forget(ctx)
}

// IsPaused reports whether a job is paused.
func IsPaused(ctx context.Context, locks *core.Client, name string) (bool, error) {
	flag, err := pauseOf(locks, name)
	if err != nil {
		return false, err
	}
	record, err := flag.Peek(ctx)
	return record.State == core.StateCompleted, err
}

// paused reports whether the job is paused, and compares the clocks on the way: it asks for a run that is always too
// late, which Redis refuses with its time.
func (j *job) paused(ctx context.Context) (bool, error) {
	flag := j.locks.Once(pauseKey(j.name), core.WithWait(0), core.WithWindow(time.Time{}, time.UnixMilli(1)))
	asked := time.Now()
	_, err := flag.Begin(ctx)
	var outside *core.OutsideWindowError
	switch {
	case errors.As(err, &outside):
		j.skewed(asked, time.Now(), outside.ServerTime)
		return false, nil
	case errors.Is(err, core.ErrCompleted):
		return true, nil
	case errors.Is(err, core.ErrInProgress):
		return false, nil // somebody is about to pause it
	}
	return false, err
}

// pauseOf is the record that a job is paused.
func pauseOf(locks *core.Client, name string) (*core.Once, error) {
	if locks == nil {
		return nil, errNoClient
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	return locks.Once(pauseKey(name), core.WithRetention(pauseTime), core.WithWait(pausePatience)), nil
}

// pausePatience bounds the waiting for somebody else who pauses the same job.
const pausePatience = 5 * time.Second
