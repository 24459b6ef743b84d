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

// TestTickOf: a call belongs to the tick that it is late for, or to one that is at most a minute away, and the windows of the
// ticks leave no gap.
func TestTickOf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ schedule, now, tick, from, to string }{
		{"5m", "2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z", "2026-01-31T11:59:00Z", "2026-01-31T12:04:00Z"},
		{"5m", "2026-01-31T12:03:59Z", "2026-01-31T12:00:00Z", "2026-01-31T11:59:00Z", "2026-01-31T12:04:00Z"},
		{"5m", "2026-01-31T12:04:00Z", "2026-01-31T12:05:00Z", "2026-01-31T12:04:00Z", "2026-01-31T12:09:00Z"},
		{"5m", "2026-01-31T11:58:59Z", "2026-01-31T11:55:00Z", "2026-01-31T11:54:00Z", "2026-01-31T11:59:00Z"},
		{"90", "1970-01-01T00:01:20Z", "1970-01-01T00:01:30Z", "1970-01-01T00:00:45Z", "1970-01-01T00:02:15Z"},
		{"1s", "2026-01-31T12:00:00.499Z", "2026-01-31T12:00:00Z", "2026-01-31T11:59:59.5Z", "2026-01-31T12:00:00.5Z"},
		{"1h", "2026-01-31T09:31:00Z", "2026-01-31T09:00:00Z", "2026-01-31T08:59:00Z", "2026-01-31T09:59:00Z"},
		{"1h", "2026-01-31T10:00:00Z", "2026-01-31T10:00:00Z", "2026-01-31T09:59:00Z", "2026-01-31T10:59:00Z"},
		{"CRON_TZ=UTC 0 3 * * *", "2026-01-31T02:59:58Z", "2026-01-31T03:00:00Z", "2026-01-31T02:59:00Z", "2026-02-01T02:59:00Z"},
		{"CRON_TZ=UTC 0 3 * * *", "2026-01-31T03:00:02Z", "2026-01-31T03:00:00Z", "2026-01-31T02:59:00Z", "2026-02-01T02:59:00Z"},
		{"CRON_TZ=UTC 0 3 * * *", "2026-02-01T02:58:59Z", "2026-01-31T03:00:00Z", "2026-01-31T02:59:00Z", "2026-02-01T02:59:00Z"},
		{"CRON_TZ=UTC 0,1 3 * * *", "2026-01-31T03:00:31Z", "2026-01-31T03:01:00Z", "2026-01-31T03:00:30Z", "2026-02-01T02:59:00Z"},
		{"CRON_TZ=UTC 0,10 3 * * *", "2026-01-31T03:07:00Z", "2026-01-31T03:00:00Z", "2026-01-31T02:59:00Z", "2026-01-31T03:09:00Z"},
		{"CRON_TZ=UTC 0 4 * * 0", "2026-01-29T11:00:00Z", "2026-01-25T04:00:00Z", "2026-01-25T03:59:00Z", "2026-02-01T03:59:00Z"},
		{"CRON_TZ=UTC 0 0 29 2 *", "2026-01-31T03:07:00Z", "2024-02-29T00:00:00Z", "2024-02-28T23:59:00Z", "2028-02-28T23:59:00Z"},
	} {
		s, err := parseTick(test.schedule)
		if err != nil {
			t.Fatal(err)
		}
		tick, from, to := tickOf(s, at(test.now))
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

// TestTicksAreRunOnce follows calls of one crontab, by hand and by programs that catch up, and wants each tick to run once.
func TestTicksAreRunOnce(t *testing.T) {
	t.Parallel()
	type call struct {
		at   string
		runs bool
	}
	for name, test := range map[string]struct {
		schedule, zone string
		calls          []call
	}{
		"by hand on Thursday": {"0 4 * * 0", "UTC", []call{
			{"2026-01-29T11:00:00Z", true}, // for Sunday the 25th, which has not run
			{"2026-01-29T11:05:00Z", false},
			{"2026-02-01T04:00:00Z", true},
			{"2026-02-05T11:00:00Z", false}, // for Sunday, which has run
			{"2026-02-08T04:00:00Z", true},
		}},
		"every hour": {"1h", "UTC", []call{
			{"2026-01-29T09:31:00Z", true}, {"2026-01-29T10:00:00Z", true}, {"2026-01-29T10:00:02Z", false},
		}},
		"clocks of two hosts": {"0 3 * * *", "UTC", []call{
			{"2026-01-29T02:59:30Z", true}, {"2026-01-29T03:00:30Z", false}, // by 30 s ahead and behind
			{"2026-01-30T03:00:00Z", true},
		}},
		"anacron after a weekend": {"0 3 * * *", "UTC", []call{
			{"2026-01-30T03:00:00Z", true},  // Friday
			{"2026-02-02T08:45:00Z", true},  // Monday morning, for 03:00
			{"2026-02-02T17:30:00Z", false}, // a second host
			{"2026-02-03T03:00:00Z", true},
		}},
		"a time that clocks skip": {"30 2 * * *", "America/Los_Angeles", []call{
			{"2026-03-07T02:30:00-08:00", true},
			{"2026-03-08T01:55:00-08:00", false}, // late for the 7th
			{"2026-03-08T03:00:00-07:00", true},  // cron runs it right after the gap
			{"2026-03-08T03:30:00-07:00", false}, // a host whose cron is late
			{"2026-03-08T12:00:00-07:00", false}, // by hand
			{"2026-03-09T02:30:00-07:00", true},
		}},
		"a time that clocks skip, zone of the line": {"CRON_TZ=America/Los_Angeles 30 2 * * *", "UTC", []call{
			{"2026-03-07T10:30:00Z", true}, {"2026-03-08T10:00:01Z", true}, {"2026-03-08T10:00:09Z", false}, {"2026-03-09T09:30:00Z", true},
		}},
		"a midnight that clocks skip": {"0 0 * * *", "Africa/Cairo", []call{
			{"2025-04-24T00:00:00+02:00", true},
			{"2025-04-25T01:00:00+03:00", true},
			{"2025-04-25T09:00:00+03:00", false},
			{"2025-04-26T00:00:00+03:00", true},
		}},
		"Persistent=true at boot": {"0 0 * * 1", "UTC", []call{
			{"2026-02-08T23:58:50Z", true}, // for Monday the 2nd, seconds before the next one
			{"2026-02-09T00:00:20Z", true},
			{"2026-02-09T00:00:40Z", false},
		}},
	} {
		zone, err := time.LoadLocation(test.zone)
		if err != nil {
			t.Fatal(err)
		}
		s, err := parseTick(test.schedule)
		if err != nil {
			t.Fatal(err)
		}
		ran := make(map[string]bool)
		for _, c := range test.calls {
			tick, _, _ := tickOf(s, at(c.at).In(zone))
			key := tickKey("job", tick)
			if ran[key] == c.runs {
				t.Errorf("%s: at %s the call is for %s, which has run: %v; want a run: %v", name, c.at, key, ran[key], c.runs)
			}
			ran[key] = true
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

// TestTickOfEnded: the search ends although the schedule has no next time, or never had one.
func TestTickOfEnded(t *testing.T) {
	t.Parallel()
	now := at("2026-01-31T12:00:00Z")
	if tick, _, to := tickOf(ended(now), now); !tick.Equal(now) || !to.After(now) {
		t.Errorf("the tick is %v, until %v", tick, to)
	}
	if _, from, to := tickOf(ended{}, now); !from.Before(now) || !to.After(now) {
		t.Errorf("the window is %v to %v", from, to)
	}
}
