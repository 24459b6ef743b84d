package cli

import (
	"testing"
	"time"
)

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

// TestNearestTick: hosts whose crons fire at different moments find the same tick, and windows leave no gap.
func TestNearestTick(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ schedule, now, tick, from, to string }{
		{"5m", "2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z", "2026-01-31T11:57:30Z", "2026-01-31T12:02:30Z"},
		{"5m", "2026-01-31T12:02:29Z", "2026-01-31T12:00:00Z", "2026-01-31T11:57:30Z", "2026-01-31T12:02:30Z"},
		{"5m", "2026-01-31T12:02:31Z", "2026-01-31T12:05:00Z", "2026-01-31T12:02:30Z", "2026-01-31T12:07:30Z"},
		{"5m", "2026-01-31T11:58:00Z", "2026-01-31T12:00:00Z", "2026-01-31T11:57:30Z", "2026-01-31T12:02:30Z"},
		{"90", "1970-01-01T00:01:20Z", "1970-01-01T00:01:30Z", "1970-01-01T00:00:45Z", "1970-01-01T00:02:15Z"},
		{"CRON_TZ=UTC 0 3 * * *", "2026-01-31T02:59:58Z", "2026-01-31T03:00:00Z", "2026-01-30T15:00:00Z", "2026-01-31T15:00:00Z"},
		{"CRON_TZ=UTC 0 3 * * *", "2026-01-31T03:00:02Z", "2026-01-31T03:00:00Z", "2026-01-30T15:00:00Z", "2026-01-31T15:00:00Z"},
		{"CRON_TZ=UTC 0,10 3 * * *", "2026-01-31T03:07:00Z", "2026-01-31T03:10:00Z", "2026-01-31T03:05:00Z", "2026-01-31T15:05:00Z"},
		{"CRON_TZ=UTC 0 0 29 2 *", "2026-01-31T03:07:00Z", "2026-01-31T03:10:00Z", "", ""},
	} {
		s, err := parseTick(test.schedule)
		if err != nil {
			t.Fatal(err)
		}
		tick, from, to := nearest(s, at(test.now))
		if test.from == "" {
			if tick.UTC().Month() != time.February || tick.UTC().Day() != 29 {
				t.Errorf("%+v: %v", test, tick)
			}
			continue
		}
		if !tick.Equal(at(test.tick)) || !from.Equal(at(test.from)) || !to.Equal(at(test.to)) {
			t.Errorf("%+v: %v %v %v", test, tick.UTC(), from.UTC(), to.UTC())
		}
	}
	for _, wrong := range []string{"", "soon", "1.5s", "0", "* * *", "@every 5m", "61 * * * *", "0 0 30 2 *", "0 0 31 4 *", "8785h"} {
		if _, err := parseTick(wrong); err == nil {
			t.Errorf("%q was taken", wrong)
		}
	}
}

// ended is a schedule that has no time after a last one.
type ended time.Time

func (e ended) Next(t time.Time) time.Time {
	if t.Before(time.Time(e)) {
		return time.Time(e)
	}
	return time.Time{}
}

// TestNearestTickOfEnded: the search ends although the schedule has no next time, or never had one.
func TestNearestTickOfEnded(t *testing.T) {
	t.Parallel()
	now := at("2026-01-31T12:00:00Z")
	if tick, _, to := nearest(ended(now), now); !tick.Equal(now) || !to.After(now) {
		t.Errorf("the tick is %v, until %v", tick, to)
	}
	if _, from, to := nearest(ended{}, now); !from.Before(now) || !to.After(now) {
		t.Errorf("the window is %v to %v", from, to)
	}
}
