package cronlock

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/robfig/cron/v3"
)

// align returns the schedule of [Parser].
func align(s cron.Schedule) cron.Schedule {
	switch s := s.(type) {
	case cron.ConstantDelaySchedule:
		return aligned{max(int64(s.Delay/time.Second), 1)}
	case *cron.SpecSchedule:
		return newExpression(s)
	}
	return s
}

// aligned is an interval. [cron.Every] makes whole seconds of it, one at least.
type aligned struct{ seconds int64 }

func (a aligned) Next(t time.Time) time.Time {
	return time.Unix((t.Unix()/a.seconds+1)*a.seconds, 0).In(t.Location())
}

// isNil reports whether there is no schedule, or only its type.
func isNil(s cron.Schedule) bool {
	if s == nil {
		return true
	}
	switch v := reflect.ValueOf(s); v.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Slice, reflect.Chan:
		return v.IsNil()
	default:
		return false
	}
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

// missed returns the latest tick after last that is not after now, and how many there were. The zone of last is that in
// which a schedule without one of its own is read.
func missed(s cron.Schedule, last, now time.Time) (latest time.Time, n int) {
	for tick := s.Next(last); isDue(tick, now) && tick.After(last); tick = s.Next(tick) {
		latest, last = tick, tick
		n++
	}
	return latest, n
}
