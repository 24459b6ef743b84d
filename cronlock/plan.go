package cronlock

import (
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
)

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
	window := min(period(s, tick), mostSleep) + time.Duration(r.Late)*time.Millisecond
	return now.Before(tick.Add(max(kept, 2*window))) // see job.retention
}
