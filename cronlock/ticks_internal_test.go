package cronlock

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
)

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

// TestAdvance: each tick is handled once, whenever the job is started, and ticks that the scheduler has passed over are
// noticed. After a clock was set back, Redis decides.
func TestAdvance(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		looks []string // the wall clock, after 10:00, and by how much it was set just before
		want  []string // ticks, in seconds after 10:00; those that have passed in brackets
	}{
		{"in time", []string{"02.001s", "04.001s"}, []string{"2", "4"}},
		{"late by less than a period", []string{"3.9s", "4.1s"}, []string{"2", "4"}},
		{"twice for a tick", []string{"2.001s", "2.002s"}, []string{"2", ""}},
		{"a stall", []string{"2s", "8.5s"}, []string{"2", "4 6 8"}},
		{"a long stall", []string{"2s", "20.5s"}, []string{"2", "(4 6 8 10) 12 14 16 18 20"}},
		{"set forward", []string{"2s", "4s", "26s 20s"}, []string{"2", "4", "(6 8 10 12 14 16) 18 20 22 24 26"}},
		{"set back after the scheduler has looked", []string{"2s", "3.99s -20ms"}, []string{"2", "4"}},
		{"set back by more after that", []string{"2s", "6s", "1s -7s", "10s"}, []string{"2", "4 6", "0 8", "10"}},
		{"set back before it was started again", []string{"20s", "6s -1h", "8s"}, []string{"20", "6 3606", "8"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p, s := new(progress), secondly(t, "*/2 * * * * *")
			deadline := func(time.Time) time.Duration { return 10 * time.Second }
			offset := time.Duration(0)
			for i, look := range test.looks {
				text, set, _ := strings.Cut(look, " ")
				wall, _ := time.ParseDuration(text)
				step, _ := time.ParseDuration(set)
				offset += step
				read := func() reading { return reading{clock("10:00:00").Add(wall), wall - offset} }
				if got := inSeconds(p.advance(s, time.UTC, read, deadline)); got != test.want[i] {
					t.Errorf("at %s: %q, want %q", look, got, test.want[i])
				}
			}
		})
	}
}

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

// TestAdvanceIsBounded: after however long a stall, few ticks are claimed and not all are reported.
func TestAdvanceIsBounded(t *testing.T) {
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
		p.begin(now)
		now = now.Add(test.stall)
		due := p.advance(short(5*time.Millisecond), time.UTC, func() reading { return reading{wall: now} }, deadline)
		if len(due.ticks) > mostClaimed || len(due.passed) != test.passed || due.more != test.more {
			t.Errorf("%v: %d to claim, %d passed, more: %v; want %d and %v", test.stall, len(due.ticks), len(due.passed),
				due.more, test.passed, test.more)
		}
		if last := due.ticks[len(due.ticks)-1]; !last.Equal(now) || !p.handled.Equal(now) {
			t.Errorf("%v: the last one is %v, and %v is handled", test.stall, last, p.handled)
		}
	}
}

// TestAdvanceOfNothing: a schedule without ticks has none, and a job that is started by hand before its first tick.
func TestAdvanceOfNothing(t *testing.T) {
	t.Parallel()
	p := new(progress)
	now := clock("10:00:00.5")
	read := func() reading { return reading{wall: now} }
	deadline := func(time.Time) time.Duration { return time.Second }
	if due := p.advance(secondly(t, "0 0 0 30 2 *"), time.UTC, read, deadline); len(due.ticks) > 0 {
		t.Errorf("February 30 is at %v", due.ticks)
	}
	for _, p := range []*progress{{added: now}, {handled: now}} {
		if due := p.advance(secondly(t, "* * * * * *"), time.UTC, read, deadline); len(due.ticks) > 0 {
			t.Errorf("tick %v before the first", due.ticks)
		}
	}
}

// TestManyAtOnce: jobs of the same tick race, as they do when their goroutines are late. Each tick is handled by one.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	const starters = 500
	p, s := new(progress), secondly(t, "@every 1s")
	p.begin(clock("10:00:00"))
	deadline := func(time.Time) time.Duration { return time.Hour }
	var seconds atomic.Int64
	read := func() reading {
		return reading{wall: clock("10:00:00").Add(time.Duration(seconds.Add(1)) * time.Second)}
	}
	var mu sync.Mutex
	handled := map[time.Time]int{}
	var jobs sync.WaitGroup
	for range starters {
		jobs.Go(func() {
			due := p.advance(s, time.UTC, read, deadline)
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
