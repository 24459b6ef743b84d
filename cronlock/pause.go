package cronlock

import (
	"cmp"
	"context"
	_ "embed"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/foreign"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// The scripts of a pause. A job that is paused, or was, has one key beside its other ones: "holdfast:paused".
var (
	//go:embed lua/paused.lua
	pausedScript string
	//go:embed lua/pause.lua
	pauseScript string
	//go:embed lua/resume.lua
	resumeScript string
)

const (
	// pauseTime is how long a job stays paused at most: nothing is kept in Redis for ever.
	pauseTime = 10 * 365 * 24 * time.Hour
	// resumeMemory is how long the last pause is remembered: longer than any catch-up window.
	resumeMemory = longestPeriod + 24*time.Hour
	// latestTime is the last time that a script can have written, in us: numbers of Lua are exact up to here.
	latestTime = 1 << 53
)

// pauses are what Redis knows of the pauses of a job.
type pauses struct {
	now     time.Time // of Redis
	by      string    // who has paused the job
	present pause     // zero if the job is not paused
	last    pause     // the last one that has ended; zero if that is not remembered
}

// pause is a pause from one time until another, by the clock of Redis. A pause that has not ended lasts until now.
type pause struct{ from, until time.Time }

// covers reports whether a tick is or was skipped by the pause.
func (p pause) covers(tick time.Time) bool {
	return !p.from.IsZero() && !tick.Before(p.from) && !tick.After(p.until)
}

// evalPause runs a script on the pause of a job, once.
func evalPause(ctx context.Context, locks *core.Client, name, script string, args ...any) (any, error) {
	return seal.FactsOf(locks).Eval(ctx, script, "paused", groupOf(name), args...)
}

// readPauses asks Redis once.
func readPauses(ctx context.Context, locks *core.Client, name string) (p pauses, err error) {
	reply, err := evalPause(ctx, locks, name, pausedScript)
	if err != nil {
		return p, err
	}
	fields, _ := reply.([]any)
	if len(fields) != 5 {
		return p, core.ErrWrongType
	}
	texts := make([]string, len(fields))
	for i, field := range fields {
		text, ok := field.(string)
		if !ok {
			return p, core.ErrWrongType
		}
		texts[i] = text
	}
	at := func(i int) (t time.Time) {
		if texts[i] == "" {
			return t
		}
		us, bad := strconv.ParseInt(texts[i], 10, 64)
		if bad != nil || us < 0 || us > latestTime {
			err = core.ErrWrongType // another program has written it
			return t
		}
		return time.UnixMicro(us)
	}
	p = pauses{now: at(0), by: foreign.Line(texts[1], mostWho), last: pause{at(3), at(4)}}
	if from := at(2); !from.IsZero() {
		p.present = pause{from, p.now}
	}
	return p, err
}

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
	by = cmp.Or(oneLineOf(by), seal.FactsOf(h.locks).Instance)
	_, err := evalPause(ctx, h.locks, h.name, pauseScript, by, pauseTime.Milliseconds())
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
	resumed, err := evalPause(ctx, h.locks, h.name, resumeScript, resumeMemory.Milliseconds())
	if err == nil && resumed != int64(1) {
		err = h.checkKnown(ctx)
	}
	return err
}

// Paused reports whether the job is paused.
func (h *JobHandle) Paused(ctx context.Context) (bool, error) {
	if err := h.check(); err != nil {
		return false, err
	}
	p, err := readPauses(ctx, h.locks, h.name)
	paused := p.present != pause{}
	if err == nil && !paused {
		err = h.checkKnown(ctx)
	}
	return paused, err
}

// paused reports whether the tick is not to run because the job is or was paused, and compares the clocks on the way. It asks once.
func (j *job) paused(ctx context.Context, tick time.Time) (bool, error) {
	asked := time.Now()
	p, err := readPauses(ctx, j.locks, j.name)
	if err != nil {
		return false, err
	}
	paused := p.present != pause{}
	j.lastPaused.Store(paused)
	if !paused {
		j.skewed(tick, asked, time.Now(), p.now)
	}
	return paused || !tick.After(p.last.until), nil
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
