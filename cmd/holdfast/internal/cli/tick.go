package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
)

// schedule returns the first time after another, as of robfig/cron.
type schedule interface{ Next(time.Time) time.Time }

// every is the schedule of the multiples of an interval since 1970 in UTC.
type every time.Duration

// Next returns the next multiple.
func (e every) Next(t time.Time) time.Time {
	since := time.Duration(t.UnixNano())
	return time.Unix(0, int64(since-since%time.Duration(e)+time.Duration(e)))
}

// longestInterval bounds an interval, so that its last multiple is always found.
const longestInterval = 366 * 24 * time.Hour

// parseTick reads the value of --tick: an interval, or a cron line in the zone of this host or of its CRON_TZ.
func parseTick(text string) (schedule, error) {
	if strings.ContainsAny(text, " @") {
		s, err := cron.ParseStandard(text)
		if _, delay := s.(cron.ConstantDelaySchedule); err == nil && delay {
			return nil, fmt.Errorf("%q begins at a different time on each host: use an interval such as 5m", text)
		}
		if err == nil && s.Next(time.Now()).IsZero() {
			return nil, fmt.Errorf("%q: no day of the coming years has this date", text)
		}
		if err != nil {
			return nil, err
		}
		if zoneOf(s) == time.Local {
			if err := checkZone(os.Getenv("TZ"), time.Local.String()); err != nil {
				return nil, err
			}
		}
		ticks, err := cronlock.Parser(nil).Parse(text)
		return cronTicks{ticks, zoneOf(s)}, err
	}
	var interval duration
	if err := interval.UnmarshalText([]byte(text)); err != nil {
		return nil, err
	}
	if interval.value() > longestInterval {
		return nil, fmt.Errorf("%q is too long: %d hours, a year, are the most", text, longestInterval/time.Hour)
	}
	if interval.value() < time.Second || interval.value()%time.Second != 0 {
		return nil, fmt.Errorf("%q: whole seconds are needed", text)
	}
	return every(interval), nil
}

// cronTicks is the schedule of a cron line, in a zone.
type cronTicks struct {
	schedule
	zone *time.Location
}

// zoneOf returns the zone of a cron line, nil for another schedule.
func zoneOf(s cron.Schedule) *time.Location {
	if line, ok := s.(*cron.SpecSchedule); ok {
		return line.Location
	}
	return nil
}

// checkZone refuses the TZ of the environment if it does not exist: then Go takes UTC, and calls the local zone so.
func checkZone(tz, local string) error {
	if tz = strings.TrimPrefix(tz, ":"); tz != "" && tz != "UTC" && local == "UTC" {
		return fmt.Errorf("TZ=%q: this host has no such time zone: a name such as Europe/Berlin is wanted, in TZ or in the line, as in "+
			"'CRON_TZ=Europe/Berlin 0 3 * * *'", tz)
	}
	return nil
}

// zoneNote returns what the record of a tick says of the zone of the line, so that operators see which calls differ in it.
func zoneNote(s schedule, tick time.Time) string {
	line, ok := s.(cronTicks)
	if !ok || line.zone == nil {
		return ""
	}
	return "zone " + strings.TrimPrefix(line.zone.String()+", ", "Local, ") + tick.In(line.zone).Format("MST, -07:00")
}

// serverTime returns the time by the clock of Redis. It also returns when ctx ends: go-redis would first wait for the answer.
func serverTime(ctx context.Context, rdb redis.UniversalClient) (time.Time, error) {
	return await(ctx, func() (time.Time, error) { return rdb.Time(ctx).Result() })
}

// noTime returns the error of a request for the time, as the library has it for other requests.
func noTime(err error) error {
	if redis.IsPermissionError(err) || redis.IsAuthError(err) {
		return fmt.Errorf("%w: %w", core.ErrPermission, err)
	}
	return fmt.Errorf("%w: %w", core.ErrUnavailable, err)
}

// earliest is how long before its time a tick can be claimed: for as much the clock of a host may be ahead. A schedule with
// ticks less than twice as far apart has half of their distance.
const earliest = time.Minute

// tickOf returns the tick to which a call at t belongs, and the window of all times that belong to it. That is the last tick,
// for which the call is on time or late, or the next one if t is right before it.
func tickOf(s schedule, t time.Time) (tick, from, to time.Time) {
	before := last(s, t)
	after := next(s, before)
	if begin := claimable(before, after); t.Before(begin) {
		return before, claimable(last(s, before.Add(-time.Nanosecond)), before), begin
	}
	return after, claimable(before, after), claimable(after, next(s, after))
}

// claimable returns from when on a tick can be claimed that follows another one.
func claimable(before, tick time.Time) time.Time {
	return tick.Add(-min(earliest, tick.Sub(before)/2)).Truncate(time.Millisecond)
}

// tickKey returns the key of the run of a tick.
func tickKey(key string, tick time.Time) string { return key + "@" + tick.UTC().Format(time.RFC3339) }

// farthest is farther than the next time of any cron line: February 29 comes after eight years at the latest.
const farthest = 8 * 366 * 24 * time.Hour

// next returns the first time of the schedule after t. If there is none for years, it returns a time long after.
func next(s schedule, t time.Time) time.Time {
	if found := s.Next(t); !found.IsZero() {
		return found
	}
	return t.Add(farthest)
}

// last returns the latest time of the schedule that is not after t. If there was none for years, it returns a time long
// before.
func last(s schedule, t time.Time) time.Time {
	for back := time.Second; ; back *= 2 {
		found := next(s, t.Add(-back))
		if found.After(t) && back < farthest {
			continue
		}
		if found.After(t) {
			return t.Add(-back)
		}
		for following := next(s, found); !following.After(t); following = next(s, found) {
			found = following
		}
		return found
	}
}
