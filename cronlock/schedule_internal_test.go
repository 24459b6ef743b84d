package cronlock

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/tests/testkit"
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

// TestTicksBetween counts the ticks after the last one, in the zone of the scheduler if the schedule has none.
func TestTicksBetween(t *testing.T) {
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
			ticks, more := ticksBetween(secondly(t, test.spec), clock(test.last).In(test.zone), clock(test.now), 5)
			if len(ticks) != test.n || more || test.n > 0 && !ticks[test.n-1].Equal(clock(test.latest)) {
				t.Errorf("%v, more: %v; want %d, the latest at %s", ticks, more, test.n, test.latest)
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
		j := &job{schedule: secondly(t, test.spec), config: config{Config: guard.Config{TTL: test.ttl}, attempts: test.failover}}
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

func clock(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, "2026-03-01T"+text+"Z")
	if err != nil {
		panic(err)
	}
	return t
}

func secondly(t *testing.T, spec string) cron.Schedule {
	t.Helper()
	parser := cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow |
		cron.Descriptor)
	s, err := parser.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return align(s)
}

// TestLatestTick finds the latest tick, in few steps, wherever now is.
func TestLatestTick(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ spec, now, want string }{
		{"*/2 * * * * *", "10:00:02", "10:00:02"},
		{"*/2 * * * * *", "10:00:01.999999999", "10:00:00"},
		{"0 0 3 * * *", "02:59:59", "2026-02-28T03:00:00Z"},
		{"0 0 0 29 2 *", "02:59:59", "2024-02-29T00:00:00Z"},
		{"0 0 0 1 1 *", "02:59:59", "2026-01-01T00:00:00Z"},
		{"@every 7s", "10:00:00", "2026-03-01T09:59:57Z"},
		{"0 0 30 2 *", "10:00:00", ""},
	} {
		var want time.Time
		if len(test.want) > 15 {
			want, _ = time.Parse(time.RFC3339, test.want)
		} else if test.want != "" {
			want = clock(test.want)
		}
		asked := &asking{Schedule: secondly(t, test.spec)}
		if got := latestTick(asked, clock(test.now)); !got.Equal(want) {
			t.Errorf("%s at %s: %v, want %v", test.spec, test.now, got, want)
		}
		if asked.n > 60 {
			t.Errorf("%s: asked %d times", test.spec, asked.n)
		}
	}
	asked := &asking{Schedule: short(5 * time.Millisecond)}
	if got, want := latestTick(asked, clock("10:00:00.0149")), clock("10:00:00.010"); !got.Equal(want) || asked.n > 60 {
		t.Errorf("%v after %d steps, want %v", got, asked.n, want)
	}
}

// TestLatestTickInDaylightSaving: the latest tick is that to which the scheduler comes tick by tick, at any time of a
// day on which the clock is set.
func TestLatestTickInDaylightSaving(t *testing.T) {
	t.Parallel()
	for zone, day := range map[string]string{
		"America/New_York": "2026-11-01T00:00:00Z", "America/Sao_Paulo": "2018-11-04T00:00:00Z",
		"Europe/Berlin": "2026-03-29T00:00:00Z",
	} {
		location := load(t, zone)
		start, _ := time.Parse(time.RFC3339, day)
		for _, spec := range []string{"30 1 * * *", "30 2 * * *", "0 0 * * *", "0 * * * *", "*/15 * * * *", "@every 40m"} {
			s := secondly(t, spec)
			want := time.Time{}
			next := s.Next(start.Add(-72 * time.Hour).In(location))
			for minutes := -12 * 60; minutes < 48*60; minutes += 7 {
				now := start.Add(time.Duration(minutes) * time.Minute).In(location)
				for !next.After(now) {
					want, next = next, s.Next(next)
				}
				if got := latestTick(s, now); !got.Equal(want) {
					t.Fatalf("%s in %s at %v: %v, want %v", spec, zone, now, got, want)
				}
			}
		}
	}
}

// asking counts how often it is asked.
type asking struct {
	cron.Schedule
	n int
}

func (a *asking) Next(t time.Time) time.Time {
	a.n++
	return a.Schedule.Next(t)
}

// short is a period below a second.
type short time.Duration

func (s short) Next(t time.Time) time.Time { return t.Truncate(time.Duration(s)).Add(time.Duration(s)) }

// TestDue: each tick is handled once, whenever the job is started, and ticks that the scheduler has missed are
// noticed. After a clock was set back, Redis decides.
func TestDue(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		looks []string // the wall clock, after 10:00
		want  []string // ticks, in seconds after 10:00; those that have passed in brackets
	}{
		{"in time", []string{"02.001s", "04.001s"}, []string{"2", "4"}},
		{"late by less than a period", []string{"3.9s", "4.1s"}, []string{"2", "4"}},
		{"for no tick", []string{"0s", "1.999s"}, []string{"", ""}},
		{"twice for a tick", []string{"2.001s", "2.002s"}, []string{"2", ""}},
		{"a stall", []string{"2s", "8.5s"}, []string{"2", "4 6 8"}},
		{"a long stall", []string{"2s", "20.5s"}, []string{"2", "(4 6 8 10) 12 14 16 18 20"}},
		{"set forward", []string{"2s", "4s", "26s"}, []string{"2", "4", "(6 8 10 12 14 16) 18 20 22 24 26"}},
		{"set back by a moment", []string{"4.001s", "3.99s"}, []string{"2 4", ""}},
		{"set back by more", []string{"6s", "1s", "2s", "10s"}, []string{"2 4 6", "0", "2", "4 6 8 10"}},
		{"set back by an hour", []string{"3606s", "8s", "10s"}, []string{passedOver, "8", "10"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p, s := new(progress), secondly(t, "*/2 * * * * *")
			p.add(clock("10:00:00"))
			deadline := func(time.Time) time.Duration { return 10 * time.Second }
			for i, look := range test.looks {
				wall, _ := time.ParseDuration(look)
				read := func() time.Time { return clock("10:00:00").Add(wall) }
				if got := inSeconds(p.due(s, read, deadline)); got != test.want[i] && (test.want[i] != passedOver || got[0] != '(') {
					t.Errorf("at %s: %q, want %q", look, got, test.want[i])
				}
			}
		})
	}
}

// passedOver stands for many ticks.
const passedOver = "(...)"

// inSeconds writes ticks as seconds after 10:00.
func inSeconds(due pending) string {
	write := func(ticks []time.Time) string {
		var all []string
		for _, tick := range ticks {
			all = append(all, strconv.Itoa(int(tick.Sub(clock("10:00:00"))/time.Second)))
		}
		return strings.Join(all, " ")
	}
	if len(due.passed) == 0 {
		return write(due.ticks)
	}
	return "(" + write(due.passed) + ") " + write(due.ticks)
}

// TestDueIsBounded: after however long a stall, few ticks are claimed and not all are reported.
func TestDueIsBounded(t *testing.T) {
	t.Parallel()
	deadline := func(time.Time) time.Duration { return 10 * time.Second }
	for _, test := range []struct {
		stall  time.Duration
		passed int
		more   bool
	}{
		{100 * time.Millisecond, 0, false},
		{10 * time.Second, 1900, false},
		{48 * time.Hour, mostPassed + 1900, true},
	} {
		p, now := new(progress), clock("10:00:00")
		p.begin(short(5*time.Millisecond), now, now)
		now = now.Add(test.stall)
		due := p.due(short(5*time.Millisecond), func() time.Time { return now }, deadline)
		if len(due.ticks) > mostClaimed || len(due.passed) != test.passed || due.more != test.more {
			t.Errorf("%v: %d to claim, %d passed, more: %v; want %d and %v", test.stall, len(due.ticks), len(due.passed),
				due.more, test.passed, test.more)
		}
		if last := due.ticks[len(due.ticks)-1]; !last.Equal(now) || !p.handled.Equal(now) {
			t.Errorf("%v: the last one is %v, and %v is handled", test.stall, last, p.handled)
		}
	}
}

// TestNothingIsDue: a schedule without ticks has none, and a job that is started by hand before its first tick.
func TestNothingIsDue(t *testing.T) {
	t.Parallel()
	now := clock("10:00:00.5")
	read := func() time.Time { return now }
	deadline := func(time.Time) time.Duration { return time.Second }
	for _, handled := range []time.Time{now.Add(-time.Hour), now.Add(time.Hour)} {
		p := &progress{handled: handled}
		if due := p.due(secondly(t, "0 0 0 30 2 *"), read, deadline); len(due.ticks) > 0 {
			t.Errorf("February 30 is at %v", due.ticks)
		}
	}
	p := new(progress)
	p.add(now)
	if due := p.due(secondly(t, "* * * * * *"), read, deadline); len(due.ticks) > 0 {
		t.Errorf("tick %v before the first", due.ticks)
	}
}

// TestManyAtOnce: jobs of the same tick race, as they do when their goroutines are late. Each tick is handled by one.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	const starters = 500
	p, s := new(progress), secondly(t, "@every 1s")
	p.begin(s, clock("10:00:00"), clock("10:00:00"))
	deadline := func(time.Time) time.Duration { return time.Hour }
	var seconds atomic.Int64
	read := func() time.Time { return clock("10:00:00").Add(time.Duration(seconds.Add(1)) * time.Second) }
	var mu sync.Mutex
	handled := map[time.Time]int{}
	var jobs sync.WaitGroup
	for range starters {
		jobs.Go(func() {
			due := p.due(s, read, deadline)
			mu.Lock()
			defer mu.Unlock()
			for _, tick := range due.ticks {
				handled[tick]++
			}
		})
	}
	jobs.Wait()
	if len(handled) != starters {
		t.Errorf("%d ticks, want %d", len(handled), starters)
	}
	for tick, n := range handled {
		if n != 1 {
			t.Errorf("%v handled %d times", tick, n)
		}
	}
}

// TestGap: a time that clocks skip has its tick right after the gap, once, and no other tick is lost.
func TestGap(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		spec, zone, from, to string
		want                 []string // in the zone
	}{
		{
			"0 2 * * *", "America/Los_Angeles", "2026-03-07 12:00", "2026-03-09 12:00",
			[]string{"2026-03-08 03:00 PDT", "2026-03-09 02:00 PDT"},
		},
		{
			"30 2 * * *", "America/Los_Angeles", "2026-03-07 12:00", "2026-03-09 12:00",
			[]string{"2026-03-08 03:00 PDT", "2026-03-09 02:30 PDT"},
		},
		{
			"*/20 2 * * *", "America/Los_Angeles", "2026-03-07 12:00", "2026-03-09 02:30",
			[]string{"2026-03-08 03:00 PDT", "2026-03-09 02:00 PDT", "2026-03-09 02:20 PDT"},
		},
		{
			"30 2,3 * * *", "America/Los_Angeles", "2026-03-07 12:00", "2026-03-08 12:00",
			[]string{"2026-03-08 03:00 PDT", "2026-03-08 03:30 PDT"},
		},
		{
			"0 2,3 * * *", "America/Los_Angeles", "2026-03-07 12:00", "2026-03-08 12:00",
			[]string{"2026-03-08 03:00 PDT"},
		},
		{
			"30 * * * *", "America/Los_Angeles", "2026-03-08 01:00", "2026-03-08 05:00",
			[]string{"2026-03-08 01:30 PST", "2026-03-08 03:30 PDT", "2026-03-08 04:30 PDT"},
		},
		{
			"0 0 * * *", "Africa/Cairo", "2025-04-23 12:00", "2025-04-26 12:00",
			[]string{"2025-04-24 00:00 EET", "2025-04-25 01:00 EEST", "2025-04-26 00:00 EEST"},
		},
		{
			"0 0 * * 5", "Africa/Cairo", "2025-04-23 12:00", "2025-05-02 12:00",
			[]string{"2025-04-25 01:00 EEST", "2025-05-02 00:00 EEST"},
		},
		{
			"0 0 25 4 *", "Africa/Cairo", "2025-04-23 12:00", "2026-04-25 12:00",
			[]string{"2025-04-25 01:00 EEST", "2026-04-25 00:00 EEST"},
		},
		{
			"@daily", "Africa/Cairo", "2025-10-30 12:00", "2025-10-31 12:00",
			[]string{"2025-10-31 00:00 EET"},
		},
		{ // the clock goes from 2:00 to 2:30
			"15 * * * *", "Australia/Lord_Howe", "2025-10-05 01:00", "2025-10-05 04:00",
			[]string{"2025-10-05 01:15 +1030", "2025-10-05 02:30 +11", "2025-10-05 03:15 +11"},
		},
		{ // robfig loses it
			"15 3 * * *", "Australia/Lord_Howe", "2025-10-05 01:00", "2025-10-06 00:00", []string{"2025-10-05 03:15 +11"},
		},
		{ // December 30 is missing
			"0 9 * * *", "Pacific/Apia", "2011-12-29 00:00", "2012-01-01 00:00",
			[]string{"2011-12-29 09:00 -10", "2011-12-31 00:00 +14", "2011-12-31 09:00 +14"},
		},
	} {
		zone := load(t, test.zone)
		const layout = "2006-01-02 15:04"
		from, _ := time.ParseInLocation(layout, test.from, zone)
		to, _ := time.ParseInLocation(layout, test.to, zone)
		// In the zone of the scheduler, and in a zone of its own with a scheduler in another one.
		for spec, scheduler := range map[string]*time.Location{
			test.spec: zone, "CRON_TZ=" + test.zone + " " + test.spec: load(t, "Asia/Kolkata"),
		} {
			s, err := Parser(nil).Parse(spec)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for tick := s.Next(from.In(scheduler)); isDue(tick, to); tick = s.Next(tick) {
				if tick.Location() != scheduler {
					t.Errorf("%s: tick in %v, want %v", spec, tick.Location(), scheduler)
				}
				got = append(got, tick.In(zone).Format(layout+" MST"))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%s in %s: %q, want %q", spec, test.zone, got, test.want)
			}
		}
	}
}

// TestExpressionsBesideAList compares the ticks of random expressions, around changes of the clock of all kinds, with a
// list that is made minute by minute.
func TestExpressionsBesideAList(t *testing.T) {
	t.Parallel()
	for _, change := range []struct{ zone, day string }{
		{"America/Los_Angeles", "2026-03-08"},
		{"America/Los_Angeles", "2026-11-01"},
		{"Africa/Cairo", "2025-04-25"},
		{"Africa/Cairo", "2025-10-31"},
		{"America/Sao_Paulo", "2018-11-04"},
		{"America/Havana", "2025-11-02"},
		{"Australia/Lord_Howe", "2025-10-05"},
		{"Australia/Lord_Howe", "2026-04-05"},
		{"Pacific/Apia", "2011-12-30"},
		{"Antarctica/Troll", "2026-03-29"},
		{"Antarctica/Troll", "2026-10-25"},
		{"UTC", "2026-03-08"},
	} {
		zone := load(t, change.zone)
		day, _ := time.ParseInLocation(time.DateOnly, change.day, zone)
		from, to := day.Add(-30*time.Hour), day.Add(54*time.Hour)
		for range testkit.Rounds(15, 60) {
			spec := randomSpec()
			s, err := cron.ParseStandard(spec)
			if err != nil {
				t.Fatal(err)
			}
			want := listOf(s.(*cron.SpecSchedule), from, to)
			var got []time.Time
			for tick := align(s).Next(from); isDue(tick, to); tick = align(s).Next(tick) {
				got = append(got, tick.In(time.UTC))
			}
			if !slices.EqualFunc(got, want, time.Time.Equal) {
				t.Errorf("%s in %s:\n%v, want\n%v", spec, zone, got, want)
			}
		}
	}
}

func randomSpec() string {
	field := func(least, most int, steps ...int) string {
		switch rand.IntN(3) {
		case 0:
			return "*"
		case 1:
			return "*/" + strconv.Itoa(steps[rand.IntN(len(steps))])
		}
		var list []string
		for range 1 + rand.IntN(3) {
			list = append(list, strconv.Itoa(least+rand.IntN(most-least+1)))
		}
		return strings.Join(list, ",")
	}
	days := []string{"* * *", "* * *", "*/2 * *", "* * 0,5", "* * 1-5", "1-8 * *"}
	return fmt.Sprintf("%s %s %s", field(0, 59, 7, 15, 30), field(0, 3, 2, 5, 12), days[rand.IntN(len(days))])
}

// listOf looks at each minute: of the clock, and of what a change of it skips.
func listOf(s *cron.SpecSchedule, from, to time.Time) (ticks []time.Time) {
	fits := func(wall time.Time) bool {
		dom, dow := 1<<uint(wall.Day())&s.Dom != 0, 1<<uint(wall.Weekday())&s.Dow != 0
		day := dom || dow
		if s.Dom>>63 == 1 || s.Dow>>63 == 1 {
			day = dom && dow
		}
		return day && 1<<uint(wall.Minute())&s.Minute != 0 && 1<<uint(wall.Hour())&s.Hour != 0 &&
			1<<uint(wall.Month())&s.Month != 0
	}
	hourly := s.Hour&(1<<24-1) == 1<<24-1
	for at := from.Add(time.Minute); !at.After(to); at = at.Add(time.Minute) {
		_, before := at.Add(-time.Minute).Zone()
		_, after := at.Zone()
		tick := fits(onWall(at))
		for skipped := at.Add(time.Duration(before) * time.Second).UTC(); skipped.Before(onWall(at)); {
			gap := time.Duration(after-before) * time.Second
			tick = tick || fits(skipped) && !(hourly && fits(skipped.Add(gap)))
			skipped = skipped.Add(time.Minute)
		}
		if tick {
			ticks = append(ticks, at.In(time.UTC))
		}
	}
	return ticks
}

// TestListedBeforeTheScheduler: somebody who lists the next ticks before the scheduler begins makes no tick of the time between due.
// A scheduler that has slept through its first ticks asks in the same way, before or after the job has started.
func TestListedBeforeTheScheduler(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name      string
		asked     []string // for the next tick, after 10:00
		now, want string
	}{
		{"not listed", []string{"10"}, "12", "(11) 12"},
		{"listed once", []string{"0", "10.5"}, "11", "11"},
		{"listed often", []string{"0", "0.5", "3", "3.2", "8", "10.5"}, "12", "(11) 12"},
		{"listed for a tick that is less than a second late", []string{"0", "9", "10.5"}, "12", "(10 11) 12"},
		{"listed just before", []string{"10", "10.5"}, "12", "(11) 12"},
		{"slept, asked first", []string{"0", "10"}, "10.1", "(1 2 3 4 5 6 7 8 9) 10"},
		{"listed, slept, asked first", []string{"0", "10", "20"}, "20.1", "(11 12 13 14 15 16 17 18 19) 20"},
		{"slept, asked later", []string{"0"}, "10.1", "(1 2 3 4 5 6 7 8 9) 10"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			after := func(seconds string) time.Time {
				d, err := time.ParseDuration(seconds + "s")
				if err != nil {
					t.Fatal(err)
				}
				return clock("10:00:00").Add(d)
			}
			p, s := new(progress), secondly(t, "* * * * * *")
			p.add(clock("10:00:00"))
			for _, asked := range test.asked {
				p.begin(s, after(asked), after(asked))
			}
			none := func(time.Time) time.Duration { return 0 }
			if got := inSeconds(p.due(s, func() time.Time { return after(test.now) }, none)); got != test.want {
				t.Errorf("due %q, want %q", got, test.want)
			}
			p.begin(s, after("40"), after("40")) // the scheduler goes on: what it misses now is due
			if got := inSeconds(p.due(s, func() time.Time { return after("40") }, none)); !strings.HasSuffix(got, "37 38 39) 40") ||
				len(strings.Fields(got)) < 20 {
				t.Errorf("due %q after a stall", got)
			}
		})
	}
}
