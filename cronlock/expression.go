package cronlock

import (
	"time"

	"github.com/robfig/cron/v3"
)

// Parser returns a parser for [cron.WithParser] whose schedules have the ticks that cronlock has, the same on all replicas. It reads
// specs as p does. A nil p is the parser that a cron has by default.
//
//   - [cron.Every], as in "@every 1h", has the multiples of the interval since 1970, in whole seconds.
//   - A cron expression has each instant at which the clock of its zone shows a time that fits: two where daylight saving
//     ends and a time of the day occurs twice. If clocks go forward over a time that fits, the expression has a tick right
//     after the gap instead, once however many such times the gap has: "0 2 * * *" at 3:00 on that day. An expression
//     that runs in every hour of the day, such as "30 * * * *", has such a tick only if it would lose a run: its next run
//     usually takes place at the instant of the missing one.
//   - Other schedules are returned as they are.
//
// [AddFunc], [AddJob] and [AddSchedule] have these ticks by themselves. Use Parser for jobs that are added to a cron without them,
// such as those of [Exclusive] and [Leader].
func Parser(p cron.ScheduleParser) cron.ScheduleParser {
	if p == nil {
		p = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)
	}
	return parser{p}
}

type parser struct{ inner cron.ScheduleParser }

func (p parser) Parse(spec string) (cron.Schedule, error) {
	s, err := p.inner.Parse(spec)
	if err != nil || isNil(s) {
		return s, err
	}
	return align(s), nil
}

// expression is a cron expression. robfig's own Next loses days on which clocks are set at midnight or by half an hour,
// and has no tick for a time that clocks skip. Here robfig evaluates the fields without a zone, in UTC, and the result is
// mapped to instants, one stretch between two changes of the zone's offset after the other.
type expression struct {
	spec *cron.SpecSchedule
	wall cron.SpecSchedule // the fields of spec, in UTC
}

func newExpression(s *cron.SpecSchedule) *expression {
	e := &expression{spec: s, wall: *s}
	e.wall.Location = time.UTC
	return e
}

// Next returns the first tick after t, in the zone of t. Like robfig's, it returns zero if there is none for five years.
func (e *expression) Next(t time.Time) time.Time {
	zone := e.spec.Location
	if zone == time.Local { // an expression without a zone of its own
		zone = t.Location()
	}
	instant := t.In(zone)
	wall := onWall(instant)
	for {
		next := e.wall.Next(wall)
		if next.IsZero() {
			return time.Time{}
		}
		tick := instant.Add(next.Sub(wall))
		_, change := instant.ZoneBounds()
		if change.IsZero() || tick.Before(change) {
			return tick.In(t.Location())
		}
		before, after := onWall(instant).Add(change.Sub(instant)), onWall(change.In(zone))
		if e.missing(before, after) || e.fits(after) {
			return change.In(t.Location())
		}
		instant, wall = change.In(zone), after
	}
}

// onWall returns what a clock shows at t in its zone, as a time in UTC.
func onWall(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.Add(time.Duration(offset) * time.Second).UTC()
}

// missing reports whether a change of the clock from one time to a later one loses a run. A missing run of an expression
// for every hour is not lost if the next one takes place at the same instant.
func (e *expression) missing(from, to time.Time) bool {
	gap := to.Sub(from) // negative where the clock was set back
	for skipped := e.wall.Next(from.Add(-1)); isDue(skipped, to.Add(-1)); skipped = e.wall.Next(skipped) {
		if !e.inEveryHour() || !e.fits(skipped.Add(gap)) {
			return true
		}
	}
	return false
}

func (e *expression) inEveryHour() bool {
	const all = 1<<24 - 1
	return e.spec.Hour&all == all
}

// fits reports whether the wall clock shows a time of the expression.
func (e *expression) fits(wall time.Time) bool { return e.wall.Next(wall.Add(-1)).Equal(wall) }
