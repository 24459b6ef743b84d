package cronlock

import (
	"errors"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"
)

// align returns the schedule of [Parser].
func align(s cron.Schedule) cron.Schedule {
	switch s := s.(type) {
	case cron.ConstantDelaySchedule:
		return aligned{max(int64(s.Delay/time.Second), 1)}
	case *cron.SpecSchedule:
		if s != nil {
			return newExpression(s)
		}
	}
	return s
}

// aligned is an interval. [cron.Every] makes whole seconds of it, one at least.
type aligned struct{ seconds int64 }

func (a aligned) Next(t time.Time) time.Time {
	return time.Unix((t.Unix()/a.seconds+1)*a.seconds, 0).In(t.Location())
}

// checkSchedule refuses a schedule with which the scheduler would panic or never sleep.
func checkSchedule(s cron.Schedule, now time.Time) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the schedule panics: %v", r)
		}
	}()
	for _, from := range []time.Time{anchor(now.Location()), now} {
		for range 3 {
			next := s.Next(from)
			if next.IsZero() {
				break
			}
			if !next.After(from) {
				return errors.New("the schedule has a next tick that is not later than the time for which it was asked")
			}
			from = next
		}
	}
	return nil
}

// anchor is a time from which ticks are counted where the answer must not depend on when it is asked for.
func anchor(zone *time.Location) time.Time { return time.Date(2024, time.January, 1, 0, 0, 0, 0, zone) }

// period is the time from a tick to the next one, the longest if there is none.
func period(s cron.Schedule, tick time.Time) time.Duration {
	next := s.Next(tick)
	if next.IsZero() {
		return longestPeriod
	}
	return min(max(next.Sub(tick), 1), longestPeriod)
}

// currentPeriod is the time from the latest tick to the next one. The time from now to the next one would be shorter,
// by chance.
func currentPeriod(s cron.Schedule, now time.Time) time.Duration {
	if latest := latestTick(s, now); !latest.IsZero() {
		return period(s, latest)
	}
	return period(s, now)
}

const longestPeriod = 366 * 24 * time.Hour

// latestTick returns the latest tick that is not after now, zero if there is none for years. It calls Next O(log n)
// times for n ticks. The zone of now is that in which a schedule without one of its own is read.
func latestTick(s cron.Schedule, now time.Time) time.Time {
	tick := time.Time{}
	for span := time.Second; tick.IsZero(); span *= 2 {
		if span > longestLookBack {
			return tick
		}
		if next := s.Next(now.Add(-span)); isDue(next, now) {
			tick = next
		}
	}
	for none := now; ; { // no tick is known to be after none
		next := s.Next(tick)
		if !isDue(next, now) || !next.After(tick) {
			return tick
		}
		tick = next
		middle := tick.Add(none.Sub(tick) / 2)
		if next := s.Next(middle); isDue(next, now) && next.After(tick) {
			tick = next
		} else {
			none = middle
		}
	}
}

// longestLookBack is the time within which robfig's schedules look for a tick.
const longestLookBack = 5 * 366 * 24 * time.Hour

func isDue(tick, now time.Time) bool { return !tick.IsZero() && !tick.After(now) }

// ticksBetween returns the ticks after from that are not after until, the earliest first, and whether there are more
// than most.
func ticksBetween(s cron.Schedule, from, until time.Time, most int) (ticks []time.Time, more bool) {
	for tick := s.Next(from); isDue(tick, until) && tick.After(from); tick = s.Next(tick) {
		if len(ticks) == most {
			return ticks, true
		}
		ticks, from = append(ticks, tick), tick
	}
	return ticks, false
}

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
// such as the jobs of [Exclusive] and [Leader].
func Parser(p cron.ScheduleParser) cron.ScheduleParser {
	if p == nil {
		p = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)
	}
	return parser{p}
}

type parser struct{ inner cron.ScheduleParser }

func (p parser) Parse(spec string) (cron.Schedule, error) {
	s, err := p.inner.Parse(spec)
	if err != nil || s == nil {
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
