package cronlock

import (
	"slices"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
)

// TestAlign: ticks of "@every" are the same whenever a process asks, multiples of whole seconds since 1970.
func TestAlign(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		every   time.Duration
		seconds int64
	}{
		{10 * time.Millisecond, 1},
		{time.Second, 1},
		{1500 * time.Millisecond, 1},
		{90*time.Second + 999*time.Millisecond, 90},
		{5 * time.Second, 5},
		{24 * time.Hour, 86400},
	} {
		for _, s := range []cron.Schedule{cron.Every(test.every), cron.ConstantDelaySchedule{Delay: test.every}} {
			for _, from := range []string{"10:00:00", "10:00:00.000000001", "10:01:07.3", "23:59:59.999999999"} {
				now := clock(from)
				next := align(s).Next(now)
				if next.Unix()%test.seconds != 0 || next.Nanosecond() != 0 || !next.After(now) ||
					next.Sub(now) > time.Duration(test.seconds)*time.Second {
					t.Errorf("@every %v: after %v comes %v", test.every, now, next)
				}
			}
		}
	}
}

func load(t *testing.T, zone string) *time.Location {
	t.Helper()
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Skipf("no time zones on this machine: %v", err)
	}
	return location
}

// TestFoldAndGap: a time that is twice on the wall clock is two ticks with keys of their own, one that is not there has
// the key of the end of the gap.
func TestFoldAndGap(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, spec, zone string
		from, to         string
		want             []string
	}{
		{
			"fold, daily", "30 1 * * *", "America/New_York", "2026-11-01T00:00:00-04:00", "2026-11-02T00:00:00-05:00",
			[]string{"2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"},
		},
		{
			"gap, daily", "30 2 * * *", "America/New_York", "2026-03-07T12:00:00-05:00", "2026-03-09T12:00:00-04:00",
			[]string{"2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"},
		},
		{
			"gap at midnight", "0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00-03:00", "2018-11-05T12:00:00-02:00",
			[]string{"2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"},
		},
		{
			"fold, hourly", "0 * * * *", "America/New_York", "2026-11-01T00:30:00-04:00", "2026-11-01T02:30:00-05:00",
			[]string{"2026-11-01T05:00:00Z", "2026-11-01T06:00:00Z", "2026-11-01T07:00:00Z"},
		},
		{
			"fold, quarters", "*/15 * * * *", "America/New_York", "2026-11-01T01:40:00-04:00", "2026-11-01T01:20:00-05:00",
			[]string{"2026-11-01T05:45:00Z", "2026-11-01T06:00:00Z", "2026-11-01T06:15:00Z"},
		},
		{
			"fold, every half hour", "@every 30m", "America/New_York",
			"2026-11-01T01:10:00-04:00", "2026-11-01T01:10:00-05:00",
			[]string{"2026-11-01T05:30:00Z", "2026-11-01T06:00:00Z"},
		},
		{
			"no daylight saving", "0 6 * * *", "UTC", "2026-03-08T00:00:00Z", "2026-03-09T00:00:00Z",
			[]string{"2026-03-08T06:00:00Z"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			from, _ := time.Parse(time.RFC3339, test.from)
			to, _ := time.Parse(time.RFC3339, test.to)
			var want []string
			for _, tick := range test.want {
				want = append(want, "cron:{job}:at:"+tick)
			}
			// In the zone of the scheduler, in its own zone, and in its own zone with a scheduler in another one.
			for spec, scheduler := range map[string]*time.Location{
				test.spec: load(t, test.zone), "CRON_TZ=" + test.zone + " " + test.spec: load(t, "Asia/Kolkata"),
				"TZ=" + test.zone + " " + test.spec: time.UTC,
			} {
				if keys := ticksOf(t, spec, from.In(scheduler), to); !slices.Equal(keys, want) {
					t.Errorf("%s: keys %q, want %q", spec, keys, want)
				}
			}
		})
	}
}

// ticksOf returns the keys of the ticks of a schedule between two times.
func ticksOf(t *testing.T, spec string, from, to time.Time) (keys []string) {
	t.Helper()
	s := secondly(t, spec)
	for tick := s.Next(from); !tick.After(to); tick = s.Next(tick) {
		keys = append(keys, tickKey("job", tick))
	}
	return keys
}

// TestMissed counts the ticks after the last one, in the zone of the scheduler if the schedule has none.
func TestMissed(t *testing.T) {
	t.Parallel()
	newYork := load(t, "America/New_York")
	for _, test := range []struct {
		name, spec, last, now string
		zone                  *time.Location
		latest                string
		n                     int
	}{
		{"none", "0 * * * *", "10:00:00", "10:59:59", time.UTC, "", 0},
		{"one, now", "0 * * * *", "10:00:00", "11:00:00", time.UTC, "11:00:00", 1},
		{"the latest of many", "0 * * * *", "10:00:00", "15:30:00", time.UTC, "15:00:00", 5},
		{"every", "@every 10m", "10:00:00", "10:45:00", time.UTC, "10:40:00", 4},
		{"another zone", "0 7 * * *", "08:00:00", "18:00:00", newYork, "12:00:00", 1},
		{"a zone of its own", "CRON_TZ=America/New_York 0 7 * * *", "08:00:00", "18:00:00", time.UTC, "12:00:00", 1},
		{"never", "0 0 30 2 *", "10:00:00", "15:30:00", time.UTC, "", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			tick, n := missed(secondly(t, test.spec), clock(test.last).In(test.zone), clock(test.now))
			if n != test.n || n > 0 && !tick.Equal(clock(test.latest)) {
				t.Errorf("%d, the latest at %v; want %d, at %s", n, tick, test.n, test.latest)
			}
		})
	}
}

// TestDeadline: ticks may be late by half of their period, within bounds, and long enough to notice a dead runner.
func TestDeadline(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		spec     string
		failover int
		ttl      time.Duration
		want     time.Duration
	}{
		{"* * * * * *", 1, 30 * time.Second, 10 * time.Second},
		{"* * * * * *", 2, 30 * time.Second, time.Minute},
		{"0 * * * * *", 1, 30 * time.Second, 30 * time.Second},
		{"0 * * * * *", 2, 30 * time.Second, time.Minute},
		{"@every 4m", 3, 30 * time.Second, 2 * time.Minute},
		{"0 3 * * *", 1, 30 * time.Second, 5 * time.Minute},
		{"0 0 30 2 *", 1, 30 * time.Second, 5 * time.Minute},
		{"* * * * * *", 2, 10 * time.Minute, 20 * time.Minute},
		{"* * * * * *", 1, 10 * time.Minute, 10 * time.Second},
	} {
		j := &job{schedule: secondly(t, test.spec), config: config{attempts: test.failover, ttl: test.ttl}}
		if got := j.deadline(clock("10:00:00")); got != test.want {
			t.Errorf("%s, %d attempts: %v, want %v", test.spec, test.failover, got, test.want)
		}
	}
}

// TestLocal: only a spec without a zone, in a cron without one, depends on the local zone.
func TestLocal(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		spec      string
		scheduler *time.Location
		want      bool
	}{
		{"0 3 * * *", time.Local, true},
		{"0 3 * * *", time.UTC, false},
		{"CRON_TZ=UTC 0 3 * * *", time.Local, false},
		{"@every 1h", time.Local, false},
	} {
		if got := local(secondly(t, test.spec), test.scheduler); got != test.want {
			t.Errorf("%s in %v: %v, want %v", test.spec, test.scheduler, got, test.want)
		}
	}
}
