package cronlock

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// JobHandle has the actions of an operator on one job. It holds nothing and needs no Close.
//
// All methods return an error, without asking Redis, for a nil client and for a name that [AddFunc] refuses. For a name
// that no replica has, they return [ErrUnknownJob].
type JobHandle struct {
	locks *core.Client
	name  string
}

// Job returns a handle on the job of that name, which any replica may have. [Jobs] lists the names. Job does no I/O.
func Job(locks *core.Client, name string) *JobHandle { return &JobHandle{locks: locks, name: name} }

func (h *JobHandle) check() error {
	if h == nil || h.locks == nil {
		return errNoClient
	}
	return checkName(h.name)
}

// checkKnown returns [ErrUnknownJob] for a job that was neither registered nor paused. It reads no runs, so that a job can be paused
// whatever their records are like.
func (h *JobHandle) checkKnown(ctx context.Context) error {
	record, err := h.locks.Once(jobKey(h.name)).Peek(ctx)
	if err != nil || record.State != core.StateNone {
		return err
	}
	if p, err := readPauses(ctx, h.locks, h.name); err != nil || p.present != (pause{}) {
		return err
	}
	return fmt.Errorf("%w %q: Jobs lists those that replicas have", ErrUnknownJob, h.name)
}

// Info returns the job as [Jobs] lists it.
func (h *JobHandle) Info(ctx context.Context) (JobInfo, error) {
	if err := h.check(); err != nil {
		return JobInfo{}, err
	}
	record, err := h.locks.Once(jobKey(h.name)).Peek(ctx)
	if err != nil {
		return JobInfo{}, err
	}
	job, ok := read(record)
	if !ok { // a pause outlives the registration
		job.info.Name = h.name
		if err := h.checkKnown(ctx); err != nil {
			return JobInfo{}, err
		}
	}
	err = job.fill(ctx, h.locks)
	return job.info, err
}

// History returns the last runs on all replicas, the latest tick first: runs in progress, runs that ended, and runs
// whose process crashed. It covers twenty periods of the schedule, or what [WithHistory] sets. It is empty for a job
// that has not run yet.
func (h *JobHandle) History(ctx context.Context) ([]Run, error) {
	if err := h.check(); err != nil {
		return nil, err
	}
	records, err := h.locks.GroupRecords(ctx, groupOf(h.name))
	if err != nil {
		return nil, err
	}
	if len(records) == 0 {
		return nil, h.checkKnown(ctx)
	}
	var runs []Run
	for _, r := range records {
		tick, ok := tickOf(h.name, r.Key)
		if !ok && strings.HasPrefix(r.Key, nowKey(h.name, "")) {
			tick, ok = r.Began, true
		}
		if ok {
			runs = append(runs, runOf(h.name, tick, r))
		}
	}
	slices.SortStableFunc(runs, func(a, b Run) int { return b.Tick.Compare(a.Tick) })
	return runs, nil
}

// Run runs the job at once, on this replica and goroutine, without the wrappers of c, and returns what its function
// returns. The job has to be in c: only the cron that a job was added to has its function and its options, and a process
// may have several crons with a job of one name. For a job that is not in c, the error is [ErrUnknownJob].
//
// The run is no tick, and works while the job is paused. While another run is in progress, Run behaves as a tick does,
// see [core.WithWait]: if it is skipped, the error is [ErrOverlap]. The context of the run descends from ctx, and ends with
// the context of [WithContext] too. The run is recorded with the client that the job was added with. Other errors come from
// [core.Once.Begin].
func (h *JobHandle) Run(ctx context.Context, c *cron.Cron) error {
	if err := h.check(); err != nil {
		return err
	}
	if c == nil {
		return errNoCron
	}
	j, there := find(c, h.name)
	if !there {
		return fmt.Errorf("%w %q: this cron has no job of that name", ErrUnknownJob, h.name)
	}
	return j.runNow(ctx)
}

// The scripts of a pause. A job that is paused, or was, has one key beside its other ones: "holdfast:paused".
var (
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
)

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
