package cronlock

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// pauseTime is how long a job stays paused at most: nothing is kept in Redis for ever.
const pauseTime = 10 * 365 * 24 * time.Hour

// resumeMemory is how long the time of the last [JobHandle.Resume] is remembered: longer than any catch-up window.
const resumeMemory = longestPeriod + 24*time.Hour

// Pause prevents runs of the job on all replicas, from the next tick on, until [JobHandle.Resume]. A run in progress
// continues, but no other replica takes it over: see [WithFailover]. [JobHandle.Run] still works. Pausing again is no
// error. A pause lasts ten years at most. It ends earlier if Redis loses its data: by FLUSHALL, or the restart of a Redis
// without persistence.
//
// by is who pauses the job: a person, or a program. Line breaks and other control characters are left out, and so is what exceeds
// 200 bytes. "" stands for the instance of the client. [JobHandle.Info] and [Jobs] show it, and when that was. Pausing a paused job
// leaves both as they are.
//
// While Redis does not answer, a job with [FailOpen] stays paused on each replica whose last answer, at a tick, was that
// it is paused. A replica without such an answer cannot know: it was started in the outage, or no tick has come since
// Pause. It runs the job.
func (h *JobHandle) Pause(ctx context.Context, by string) error {
	if err := h.check(); err != nil {
		return err
	}
	if err := h.checkKnown(ctx); err != nil {
		return err
	}
	_, err := h.pauseFlag().Do(ctx, func(context.Context) ([]byte, error) {
		return json.Marshal(pauseRecord{By: cmp.Or(oneLineOf(by), seal.FactsOf(h.locks).Instance)})
	})
	return err
}

// mostWho bounds the name in a pause, in bytes.
const mostWho = 200

// oneLineOf returns what is shown of a name.
func oneLineOf(who string) string {
	who = strings.Map(oneLine, strings.ToValidUTF8(who, ""))
	if len(who) > mostWho {
		who = strings.ToValidUTF8(who[:mostWho], "")
	}
	return who
}

// Resume lets a paused job run again, from the next tick on. Ticks until now are skipped for ever, even with
// [WithCatchUp]. Resuming a job that is not paused is no error.
func (h *JobHandle) Resume(ctx context.Context) error {
	if err := h.check(); err != nil {
		return err
	}
	flag := h.pauseFlag()
	for {
		record, err := flag.Peek(ctx)
		switch {
		case err != nil:
			return err
		case record.State == core.StateNone:
			return h.checkKnown(ctx)
		}
		// The time is written before the job is resumed: otherwise a replica that looks in between would catch up.
		if err := h.markResumed(ctx, readPause(record)); err != nil {
			return err
		}
		if err := flag.ForgetRunning(ctx, record); !errors.Is(err, core.ErrChanged) {
			return err
		}
	}
}

// forget deletes a record of this package, whatever it says: nobody has decided by what it said.
func forget(ctx context.Context, o *core.Once) error {
	for {
		record, err := o.Peek(ctx)
		if err != nil {
			return err
		}
		if err := o.ForgetRunning(ctx, record); !errors.Is(err, core.ErrChanged) {
			return err
		}
	}
}

// markResumed records when the job was resumed, by the clock of Redis, and the pause that ends so.
func (h *JobHandle) markResumed(ctx context.Context, paused pauseRecord) error {
	mark := h.locks.Once(resumedKey(h.name), core.WithRetention(resumeMemory), core.WithWait(pausePatience))
	if err := forget(ctx, mark); err != nil {
		return err
	}
	_, err := mark.Do(ctx, func(context.Context) ([]byte, error) {
		return json.Marshal(pauseRecord{By: paused.By, Since: paused.ended})
	})
	return err
}

// resumedAt returns when the job was last resumed, zero if that is not remembered.
func resumedAt(ctx context.Context, locks *core.Client, name string) (time.Time, error) {
	record, err := locks.Once(resumedKey(name)).Peek(ctx)
	return record.Ended, err
}

// Paused reports whether the job is paused.
func (h *JobHandle) Paused(ctx context.Context) (bool, error) {
	if err := h.check(); err != nil {
		return false, err
	}
	record, err := h.pauseFlag().Peek(ctx)
	if err == nil && record.State != core.StateCompleted {
		err = h.checkKnown(ctx)
	}
	return record.State == core.StateCompleted, err
}

// paused reports whether the tick is not to run because the job is or was paused, and compares the clocks on the way:
// it asks for a run that is always too late, which Redis refuses with its time.
func (j *job) paused(ctx context.Context, tick time.Time) (bool, error) {
	flag := j.locks.Once(pauseKey(j.name), core.WithWait(0), core.WithWindow(time.Time{}, time.UnixMilli(1)))
	asked := time.Now()
	_, err := flag.Begin(ctx)
	var outside *core.OutsideWindowError
	switch {
	case errors.As(err, &outside):
		j.lastPaused.Store(false)
		j.skewed(tick, asked, time.Now(), outside.ServerTime)
		return j.wasPaused(ctx, tick, outside.ServerTime)
	case errors.Is(err, core.ErrCompleted):
		j.lastPaused.Store(true)
		return true, nil
	case errors.Is(err, core.ErrInProgress):
		return false, nil // it is about to be paused
	}
	return false, err
}

// wasPaused reports whether a tick was skipped by a pause that has ended meanwhile. Most ticks are claimed too early
// for that, and need no further question.
func (j *job) wasPaused(ctx context.Context, tick, now time.Time) (bool, error) {
	const late = time.Second
	if now.Sub(tick) < late {
		return false, nil
	}
	resumed, err := resumedAt(ctx, j.locks, j.name)
	return !tick.After(resumed), err
}

// unavailable is the reason why a tick does not run in an outage. A job that fails open is paused if that was the last
// answer of Redis: the operator who has paused it may have done so because of the outage. A pause lasts longer than any
// process, so the answer does not grow too old.
func (j *job) unavailable() string {
	if j.config.FailOpen && j.lastPaused.Load() {
		return Paused
	}
	return Unavailable
}

// pauseFlag is the record that the job is paused.
func (h *JobHandle) pauseFlag() *core.Once {
	return h.locks.Once(pauseKey(h.name), core.WithRetention(pauseTime), core.WithWait(pausePatience))
}

// pausePatience bounds the waiting for another call that pauses or resumes the same job.
const pausePatience = 5 * time.Second
