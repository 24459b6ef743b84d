package cronlock

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/foreign"
)

// ErrUnknownJob refuses a name that no replica has registered. A replica registers a job when its cron starts, and after each tick
// that runs, in case Redis has lost its data. A registration lasts for at least two days, or three periods of its schedule if that is
// longer, and is renewed before that.
var ErrUnknownJob = errors.New("holdfast: cronlock: unknown job")

// JobInfo is a job as a replica has registered it.
type JobInfo struct {
	// Name is the name of the job.
	Name string
	// Service is the service that registered the job last, see [WithService].
	Service string
	// Spec is the spec of its schedule, or the type of the schedule for [AddSchedule]; Zone is the cron's.
	Spec, Zone string
	// Paused is true if the job is paused, see [JobHandle.Pause]. PausedBy says by whom, and PausedAt since when, by the clock
	// of Redis.
	Paused   bool
	PausedBy string
	PausedAt time.Time
	// LastTick is the latest tick that was claimed; zero if Redis has none.
	LastTick time.Time
	// NextTick is the first tick to come, by the clock of the caller. It is zero if there is none, or if it cannot be
	// computed here: the schedule of [AddSchedule] is of a type of its own, or this host lacks the zone.
	NextTick time.Time
	// Missed counts the ticks that no replica has claimed until their start deadline, and MissedTick is the latest of them.
	// It counts from the earliest run that Redis remembers, or from Registered if there is none, and at most as many periods
	// back as [WithHistory] says, because an older tick may have run. Ticks during the last pause do not count. It is zero
	// where NextTick cannot be computed.
	Missed     int
	MissedTick time.Time
	// Registered is when a replica last registered the job, by the clock of Redis. Replicas do so every hour at most, or
	// at once if the job has changed or Redis has lost its data.
	Registered time.Time
}

// Jobs returns the jobs that replicas have registered in this Redis under the prefix of the client, by name.
func Jobs(ctx context.Context, locks *core.Client) ([]JobInfo, error) {
	if locks == nil {
		return nil, errNoClient
	}
	records, err := locks.GroupRecords(ctx, registry)
	if err != nil {
		return nil, err
	}
	var jobs []listed
	for _, record := range records {
		if job, ok := read(record); ok {
			jobs = append(jobs, job)
		}
	}
	slices.SortFunc(jobs, func(a, b listed) int { return strings.Compare(a.info.Name, b.info.Name) })
	err = fillAll(ctx, locks, jobs)
	infos := make([]JobInfo, len(jobs))
	for i, job := range jobs {
		infos[i] = job.info
	}
	return infos, err
}

// listed is a job of the registry.
type listed struct {
	info JobInfo
	registration
}

// read returns false for a record that is no registration.
func read(record core.Record) (l listed, ok bool) {
	name, ok := strings.CutPrefix(record.Key, registry)
	if !ok || json.Unmarshal(record.Value, &l.registration) != nil || !l.possible() {
		return listed{}, false
	}
	l.info = JobInfo{Name: name, Service: l.Service, Spec: l.Spec, Zone: l.Zone, Registered: record.Ended}
	return l, true
}

// fillAll reads what is not in the registry, of some jobs at a time.
func fillAll(ctx context.Context, locks *core.Client, jobs []listed) error {
	const atOnce = 16
	errs := make([]error, len(jobs))
	room := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i := range jobs {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			errs[i] = jobs[i].fill(ctx, locks)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (l *listed) fill(ctx context.Context, locks *core.Client) error {
	i := &l.info
	p, err := readPauses(ctx, locks, i.Name)
	if err != nil {
		return err
	}
	records, err := locks.GroupRecords(ctx, groupOf(i.Name))
	if err != nil {
		return err
	}
	i.Paused, i.PausedBy, i.PausedAt = p.present != pause{}, foreign.Line(p.by, mostWho), p.present.from
	i.LastTick = latest(i.Name, records)
	return i.miss(ctx, l.registration, records, p.present, p.last, time.Now())
}

// miss sets the ticks to come and those that no replica has claimed. records are the records of the job's runs. Ticks count
// from the registration on, or from the first run before it that Redis remembers, if it was of the same schedule. A tick whose
// record would have expired does not count: it may have run. The error is ctx's.
func (i *JobInfo) miss(ctx context.Context, r registration, records []core.Record, paused, resumed pause, now time.Time) error {
	s := r.Plan.schedule()
	if s == nil {
		return nil
	}
	i.NextTick = s.Next(now.UTC())
	claimed := map[int64]bool{}
	from := i.Registered
	for _, record := range records {
		tick, ok := tickOf(i.Name, record.Key)
		if !ok {
			continue
		}
		claimed[tick.Unix()] = true
		if _, digest := readNote(record.Note); digest == r.Digest && tick.Before(from) {
			from = tick
		}
	}
	until := now.Add(-time.Duration(r.Late) * time.Millisecond)
	ticks, _ := ticksBetween(s, from.UTC(), until, mostRemembered)
	for _, tick := range ticks {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !claimed[tick.Unix()] && r.remembers(s, tick, now) && !paused.covers(tick) && !resumed.covers(tick) {
			i.Missed, i.MissedTick = i.Missed+1, tick
		}
	}
	return nil
}

// remembers reports whether Redis would still have the record of a tick, however early that tick ran and ended.
func (r registration) remembers(s cron.Schedule, tick, now time.Time) bool {
	kept := rememberedFor(r.History, period(s, tick)) - time.Duration(r.Skew)*time.Millisecond
	return now.Before(tick.Add(max(kept, 2*time.Duration(r.Late)*time.Millisecond))) // see job.retention
}
