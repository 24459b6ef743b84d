package cronlock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/foreign"
)

// registration is what is recorded of a job.
type registration struct {
	identity
	Replica string `json:"replica"`
	Plan    plan   `json:"plan,omitzero"`
	Late    int64  `json:"late,omitempty"`    // how late a tick may start, in ms
	Skew    int64  `json:"skew,omitempty"`    // how early it may start, in ms
	History int    `json:"history,omitempty"` // for how many periods it is remembered
}

// possible returns false for numbers that no replica has: another program has written them. Ticks after the year 9999 have no form as
// JSON, and one such job would make the lists of all jobs fail.
func (r registration) possible() bool {
	const most, day = int64(math.MaxInt64), int(24 * time.Hour / time.Second)
	in := func(n, most int64) bool { return n >= 0 && n <= most }
	return in(r.Late, most/int64(time.Millisecond)) && in(r.Skew, most/int64(time.Millisecond)) && in(int64(r.History), mostHistory) &&
		in(r.Plan.Every, most/int64(time.Second)) && r.Plan.Offset > -day && r.Plan.Offset < day && r.Plan.possible()
}

// identity tells apart jobs of one name that are not the same.
type identity struct {
	Service string `json:"service"`
	Spec    string `json:"spec"`   // or the type of the schedule
	Zone    string `json:"zone"`   // of the cron
	Digest  string `json:"digest"` // of spec and zone, or of some ticks
}

func newIdentity(service, spec string, s cron.Schedule, zone *time.Location) identity {
	i, ticks := identity{Service: service, Spec: spec, Zone: zone.String()}, ""
	if spec == "" {
		i.Spec = typeName(s)
		first, _ := ticksBetween(s, anchor(zone), anchor(zone).Add(longestLookBack), 8) // enough to tell most schedules apart
		for _, tick := range first {
			ticks += tick.UTC().Format(time.RFC3339Nano) + "\n"
		}
	}
	digest := sha256.Sum256([]byte(ticks + i.Spec + "\n" + i.Zone)) // the same in all versions
	i.Digest = hex.EncodeToString(digest[:8])
	return i
}

// typeName returns the type of a schedule as it was passed to [AddSchedule].
func typeName(s cron.Schedule) string {
	if e, ok := s.(*expression); ok {
		s = e.spec
	}
	return fmt.Sprintf("%T", s)
}

// note is what a record of a run says about its runner. The record has the replica by itself.
func (i identity) note() string { return i.Service + "\n" + i.Digest }

// readNote returns no service if the note has none.
func readNote(note string) (service, digest string) {
	service, digest, _ = strings.Cut(note, "\n")
	return service, digest
}

const (
	leastRegistered = 2 * 24 * time.Hour
	refreshInterval = time.Hour
)

// plan is a schedule as it is registered, so that others can compute its ticks: the command, for one. It is zero for a
// schedule of a type that cronlock does not know.
type plan struct {
	Every  int64     `json:"every,omitempty"`  // seconds of an interval
	Fields [6]uint64 `json:"fields,omitzero"`  // of a cron expression, from the second to the day of the week
	Zone   string    `json:"zone,omitempty"`   // of the expression
	Offset int       `json:"offset,omitempty"` // of the local zone, in seconds, if Zone is "Local": other hosts have another one
}

// possible returns false for fields that fit no time of the day: robfig's Next would try each second of five years.
func (p plan) possible() bool {
	const ofSixty, ofHours = 1<<60 - 1, 1<<24 - 1
	f := p.Fields
	return f == [6]uint64{} || f[0]&ofSixty != 0 && f[1]&ofSixty != 0 && f[2]&ofHours != 0
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

// registerSoon registers the job in the background.
func (j *job) registerSoon() {
	j.registered.Store(time.Now().UnixNano())
	go func() {
		defer func() {
			if r := recover(); r != nil { // no wrapper of the cron recovers it here
				j.logger.Error("holdfast: cronlock: a hook panics", "job", j.shown(), "panic", r)
			}
		}()
		ctx, cancel := context.WithTimeout(j.config.context, time.Minute)
		defer cancel()
		if err := j.register(ctx); err != nil {
			j.registered.Store(0) // again at the next tick
			j.logger.Debug("holdfast: cronlock: job not registered", "job", j.shown(), "error", err)
		}
	}()
}

// register records the job, unless that was done and is up to date.
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
	_, err = once.Do(ctx, func(context.Context) ([]byte, error) { return json.Marshal(j.registration()) })
	if errors.Is(err, core.ErrInProgress) {
		return nil // another replica is about to register it
	}
	return err
}

func (j *job) registration() registration {
	tick := j.now()
	if latest := latestTick(j.schedule, tick); !latest.IsZero() {
		tick = latest
	}
	return registration{
		identity: j.identity, Replica: j.replica, Plan: planOf(j.schedule, j.cron.Location()),
		Late: max(j.deadline(tick), j.config.catchUp).Milliseconds(), Skew: j.config.maxSkew.Milliseconds(),
		History: j.config.history,
	}
}

// outdated reports whether the record is to be written again. It warns if it belongs to another job of the same name.
func (j *job) outdated(record core.Record, kept time.Duration) bool {
	var r registration
	if json.Unmarshal(record.Value, &r) != nil {
		return true
	}
	mine := j.registration()
	if r.Service != mine.Service || r.Digest != mine.Digest {
		j.warnOfMismatch(r)
	}
	r.Replica, r.Late = mine.Replica, mine.Late // any replica's, at any tick
	return r != mine || record.Retention < kept-refreshInterval
}

// warnOfMismatch warns of another service or schedule under the name of the job.
func (j *job) warnOfMismatch(r registration) {
	other, by := foreign.Line(r.Service, maxName), foreign.Line(r.Replica, maxName)
	text := "holdfast: cronlock: another service has a job of the same name, and each takes ticks from the other: use " +
		"different names or key prefixes"
	err := fmt.Errorf("holdfast: cronlock: service %q of replica %q has a job of the same name", other, by)
	if r.Service == j.identity.Service {
		text = "holdfast: cronlock: another replica has another schedule for this job, which is right only in a rollout"
		err = fmt.Errorf("holdfast: cronlock: replica %q has another schedule for the job", by)
	}
	if elapsed(&j.mismatched, time.Now(), time.Hour) {
		j.logger.Warn(text, "job", j.shown(), "service", foreign.Line(j.identity.Service, maxName), "other", other,
			"replica", by)
	}
	j.hooks.Incident(j.config.context, core.Incident{Work: j.work(time.Time{}), Kind: IncidentMismatch, Err: err})
}

// thisService is the default of [WithService].
var thisService = sync.OnceValue(func() string {
	name := ""
	if info, ok := debug.ReadBuildInfo(); ok && info.Path != "command-line-arguments" {
		name = info.Path
	}
	if name == "" {
		name = filepath.Base(os.Args[0])
	}
	if name = strings.Map(oneLine, name); name == "" {
		return "unknown"
	}
	return name[max(len(name)-mostService, 0):]
})

func oneLine(r rune) rune {
	if r < ' ' {
		return -1
	}
	return r
}
