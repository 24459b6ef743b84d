package cronlock

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
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

// checkKnown returns [ErrUnknownJob] for a job that was neither registered nor paused.
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
// that of [WithContext] too. The run is recorded with the client that the job was added with. Other errors are those of
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
