package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"
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

// parseTick reads the value of --tick: an interval, or a cron line in the zone of this host or of its CRON_TZ.
func parseTick(text string) (schedule, error) {
	if strings.ContainsAny(text, " @") {
		s, err := cron.ParseStandard(text)
		if _, delay := s.(cron.ConstantDelaySchedule); err == nil && delay {
			return nil, fmt.Errorf("%q begins at a different time on each host: use an interval such as 5m", text)
		}
		return s, err
	}
	var interval duration
	if err := interval.UnmarshalText([]byte(text)); err != nil {
		return nil, err
	}
	if interval.value() < time.Second || interval.value()%time.Second != 0 {
		return nil, fmt.Errorf("%q: whole seconds are needed", text)
	}
	return every(interval), nil
}

// serverTime returns the time by the clock of Redis. It also returns when ctx ends: go-redis would first wait for the answer.
func serverTime(ctx context.Context, rdb redis.UniversalClient) (time.Time, error) {
	answer := make(chan *redis.TimeCmd, 1)
	go func() { answer <- rdb.Time(ctx) }()
	select {
	case cmd := <-answer:
		return cmd.Result()
	case <-ctx.Done():
		return time.Time{}, context.Cause(ctx)
	}
}

// nearest returns the time of the schedule that is nearest to t, and the window of all times to which it is the nearest.
func nearest(s schedule, t time.Time) (tick, from, to time.Time) {
	before := last(s, t)
	after := s.Next(before)
	if middle := half(before, after); t.Before(middle) {
		return before, half(last(s, before.Add(-time.Nanosecond)), before), middle
	}
	return after, half(before, after), half(after, s.Next(after))
}

// last returns the latest time of the schedule that is not after t. If there was none for years, it returns a time long
// before.
func last(s schedule, t time.Time) time.Time {
	const longest = 8 * 366 * 24 * time.Hour // a cron line for February 29
	for back := time.Second; ; back *= 2 {
		found := s.Next(t.Add(-back))
		if found.After(t) && back < longest {
			continue
		}
		if found.After(t) {
			return t.Add(-back)
		}
		for next := s.Next(found); !next.After(t); next = s.Next(found) {
			found = next
		}
		return found
	}
}

// half returns the middle between two times.
func half(a, b time.Time) time.Time { return a.Add(b.Sub(a) / 2).Truncate(time.Millisecond) }
