package cronlock

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
)

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
		for range 60 {
			spec := randomSpec()
			s, err := cron.ParseStandard(spec)
			if err != nil {
				t.Fatal(err)
			}
			want := listOf(s.(*cron.SpecSchedule), from, to)
			var got []time.Time
			for tick := Ticks(s).Next(from); isDue(tick, to); tick = Ticks(s).Next(tick) {
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
