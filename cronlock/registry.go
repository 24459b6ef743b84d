package cronlock

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
)

// ErrUnknownJob refuses a name that no replica has registered. A job is registered when the cron of a replica starts,
// when a replica asks for a tick, and, if Redis has lost its data, at the next tick that runs. A registration lasts for at
// least two days, or three periods of its schedule if that is longer.
var ErrUnknownJob = errors.New("holdfast: cronlock: unknown job")

// JobInfo is a job as a replica has registered it.
type JobInfo struct {
	// Name is the name of the job.
	Name string
	// Service is the service that registered the job last, see [WithService].
	Service string
	// Spec is that of its schedule, or the type of the schedule for [AddSchedule]; Zone is that of the cron.
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
	// Registered is when a replica last registered the job, by the clock of Redis. Replicas do so every hour at most,
	// when they ask for a tick, or at once if Redis has lost its data.
	Registered time.Time
}

// registration is what is recorded of a job.
type registration struct {
	Service string `json:"service"`
	Spec    string `json:"spec"`
	Zone    string `json:"zone"`
	Digest  string `json:"digest"`
	Replica string `json:"replica"`
	Plan    plan   `json:"plan,omitzero"`
	Late    int64  `json:"late,omitempty"`    // how late a tick may start, in ms
	Skew    int64  `json:"skew,omitempty"`    // how early it may start, in ms
	History int    `json:"history,omitempty"` // for how many periods it is remembered
}

const (
	leastRegistered = 2 * 24 * time.Hour
	refreshInterval = time.Hour
)

// refresh registers the job in the background, now and then.
func (j *job) refresh() {
	if elapsed(&j.registered, time.Now(), refreshInterval) {
		j.registerAside(j.register)
	}
}

// restore registers the job in the background if Redis has lost the registration, by FLUSHALL for instance.
func (j *job) restore() {
	j.registerAside(func(ctx context.Context) error {
		record, err := j.locks.Once(jobKey(j.name)).Peek(ctx)
		if err != nil || record.State != core.StateNone {
			return err
		}
		return j.register(ctx)
	})
}

func (j *job) registerAside(register func(context.Context) error) {
	go func() {
		ctx, cancel := context.WithTimeout(j.config.context, time.Minute)
		defer cancel()
		if err := register(ctx); err != nil {
			j.registered.Store(0) // again at the next tick
			j.logger.Debug("holdfast: cronlock: job not registered", "job", j.shown(), "error", err)
		}
	}()
}

// register records the job, unless that was done in the last hour.
func (j *job) register(ctx context.Context) error {
	kept := max(leastRegistered, 3*currentPeriod(j.schedule, j.now()))
	once := j.locks.Once(jobKey(j.name), core.WithGroup(), core.WithWait(0), core.WithRetention(whole(kept)))
	record, err := once.Peek(ctx)
	switch {
	case err != nil:
		return err
	case record.State != core.StateCompleted:
	case !j.outdated(record, kept):
		return nil
	default:
		if err := once.Forget(ctx, record); err != nil && !errors.Is(err, core.ErrChanged) {
			return err
		}
	}
	text, err := json.Marshal(j.registration())
	if err != nil {
		panic(err) // not with fields of these types
	}
	_, err = once.Do(ctx, func(context.Context) ([]byte, error) { return text, nil })
	if errors.Is(err, core.ErrInProgress) {
		return nil // another replica is about to register it
	}
	return err
}

func (j *job) registration() registration {
	i := j.identity
	tick := j.now()
	if latest := latestTick(j.schedule, tick); !latest.IsZero() {
		tick = latest
	}
	return registration{
		Service: i.service, Spec: i.spec, Zone: i.zone, Digest: i.digest, Replica: j.replica,
		Plan: planOf(j.schedule, j.cron.Location()), Late: max(j.deadline(tick), j.config.catchUp).Milliseconds(),
		Skew: j.config.maxSkew.Milliseconds(), History: j.config.history,
	}
}

// outdated reports whether the record is to be written again.
func (j *job) outdated(record core.Record, kept time.Duration) bool {
	var r registration
	if json.Unmarshal(record.Value, &r) != nil {
		return true
	}
	j.compareIdentity(time.Time{}, r.Replica, r.Service, r.Digest)
	mine := j.registration()
	return r.Service != mine.Service || r.Digest != mine.Digest || r.Plan != mine.Plan || r.History != mine.History ||
		record.Retention < kept-refreshInterval
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

// possible returns false for numbers that no replica has: another program has written them. Ticks after the year 9999 have no form as
// JSON, and one such job would make the lists of all jobs fail.
func (r registration) possible() bool {
	const most, day = int64(math.MaxInt64), int(24 * time.Hour / time.Second)
	in := func(n, most int64) bool { return n >= 0 && n <= most }
	return in(r.Late, most/int64(time.Millisecond)) && in(r.Skew, most/int64(time.Millisecond)) && in(int64(r.History), mostHistory) &&
		in(r.Plan.Every, most/int64(time.Second)) && r.Plan.Offset > -day && r.Plan.Offset < day
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
	i.Paused, i.PausedBy, i.PausedAt = p.present != pause{}, p.by, p.present.from
	i.LastTick = latest(i.Name, records)
	i.miss(l.registration, records, p.present, p.last, time.Now())
	return nil
}

// plan is a schedule as it is registered, so that others can compute its ticks: the command, for one. It is zero for a
// schedule of a type that cronlock does not know.
type plan struct {
	Every  int64     `json:"every,omitempty"`  // seconds of an interval
	Fields [6]uint64 `json:"fields,omitzero"`  // of a cron expression, from the second to the day of the week
	Zone   string    `json:"zone,omitempty"`   // of the expression
	Offset int       `json:"offset,omitempty"` // of the local zone, in seconds, if Zone is "Local": other hosts have another one
}

// planOf returns the plan of a schedule of a cron.
func planOf(s cron.Schedule, scheduler *time.Location) plan {
	switch s := s.(type) {
	case aligned:
		return plan{Every: s.seconds}
	case *expression:
		zone := s.spec.Location
		if zone == time.Local {
			zone = scheduler
		}
		p := plan{Zone: zone.String(), Fields: [6]uint64{
			s.spec.Second, s.spec.Minute, s.spec.Hour, s.spec.Dom, s.spec.Month, s.spec.Dow,
		}}
		if zone == time.Local {
			_, p.Offset = time.Now().Zone()
		}
		return p
	}
	return plan{}
}

// schedule returns nil if the ticks cannot be computed here: the type is unknown, or this host does not know the zone.
func (p plan) schedule() cron.Schedule {
	switch {
	case p.Every > 0:
		return aligned{p.Every}
	case p.Fields == [6]uint64{}:
		return nil
	}
	zone := time.FixedZone(p.Zone, p.Offset)
	if p.Zone != time.Local.String() {
		var err error
		if zone, err = time.LoadLocation(p.Zone); err != nil {
			return nil
		}
	}
	f := p.Fields
	return newExpression(&cron.SpecSchedule{
		Second: f[0], Minute: f[1], Hour: f[2], Dom: f[3], Month: f[4], Dow: f[5], Location: zone,
	})
}

// miss sets the ticks to come and those that no replica has claimed. records are those of the runs of the job. Ticks count
// from the registration on, or from the first run before it that Redis remembers, if it was of the same schedule. A tick whose
// record would have expired does not count: it may have run.
func (i *JobInfo) miss(r registration, records []core.Record, paused, resumed pause, now time.Time) {
	s := r.Plan.schedule()
	if s == nil {
		return
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
		if !claimed[tick.Unix()] && r.remembers(s, tick, now) && !paused.covers(tick) && !resumed.covers(tick) {
			i.Missed, i.MissedTick = i.Missed+1, tick
		}
	}
}

// remembers reports whether Redis would still have the record of a tick, however early that tick ran and ended.
func (r registration) remembers(s cron.Schedule, tick, now time.Time) bool {
	kept := rememberedFor(r.History, period(s, tick)) - time.Duration(r.Skew)*time.Millisecond
	return now.Before(tick.Add(max(kept, 2*time.Duration(r.Late)*time.Millisecond))) // see job.retention
}
