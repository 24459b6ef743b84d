package cronlock

import (
	"sync"
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

// TestDue: a job hears of its own tick, whether or not the scheduler has asked for the next one yet.
func TestDue(t *testing.T) {
	t.Parallel()
	type ask struct{ t, now string } // the scheduler's clock, and the real one if that is another
	for _, test := range []struct {
		name string
		asks []ask
		now  string // when the job asks
		want string
	}{
		{"job first", []ask{{t: "10:00:00.5"}}, "10:00:02.001", "10:00:02"},
		{"scheduler first", []ask{{t: "10:00:00.5"}, {t: "10:00:02.001"}}, "10:00:02.002", "10:00:02"},
		{"job late by less than a period", []ask{{t: "10:00:00.5"}, {t: "10:00:02.001"}}, "10:00:03.9", "10:00:02"},
		{
			"stopped and started",
			[]ask{{t: "10:00:00.5"}, {t: "10:00:01.5"}},
			"10:00:02.001", "10:00:02",
		},
		{
			"stopped over a tick and started",
			[]ask{{t: "10:00:00.5"}, {t: "10:00:05.5"}},
			"10:00:06.001", "10:00:06",
		},
		{
			// The timer tells the scheduler that it is 10:00:02; it sleeps two more seconds.
			"after a stall",
			[]ask{{t: "10:00:00.5"}, {"10:00:02", "10:00:07"}},
			"10:00:07.001", "10:00:02",
		},
		{
			"after a stall, the next one",
			[]ask{{t: "10:00:00.5"}, {"10:00:02", "10:00:07"}},
			"10:00:09.001", "10:00:04",
		},
		{
			"after a stall, the next one, scheduler first",
			[]ask{{t: "10:00:00.5"}, {"10:00:02", "10:00:07"}, {t: "10:00:09"}},
			"10:00:09.001", "10:00:04",
		},
		{
			"the clock jumped an hour",
			[]ask{{t: "10:00:00.5"}, {t: "11:00:01.5"}},
			"11:00:01.501", "10:00:02",
		},
		{
			"somebody lists the ticks to come",
			[]ask{{t: "10:00:00.5"}, {"10:00:02", "10:00:01"}, {"10:00:04", "10:00:01"}},
			"10:00:02.001", "10:00:02",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := &ticks{schedule: secondly(t, "*/2 * * * * *")}
			for _, ask := range test.asks {
				now := clock(ask.t)
				if ask.now != "" {
					now = clock(ask.now)
				}
				s.next(clock(ask.t), now)
			}
			tick, look := s.due(clock(test.now))
			if !tick.Equal(clock(test.want)) || look {
				t.Errorf("tick %v, to look for missed ones: %v; want %v", tick, look, test.want)
			}
		})
	}
}

// TestDueOfNothing: who is started by hand before the scheduler began, or has no tick ever, has none.
func TestDueOfNothing(t *testing.T) {
	t.Parallel()
	s := &ticks{schedule: secondly(t, "0 0 30 2 *")}
	if tick, _ := s.due(time.Now()); !tick.IsZero() {
		t.Errorf("tick %v before the scheduler asked", tick)
	}
	if next := s.Next(time.Now()); !next.IsZero() {
		t.Errorf("February 30 is at %v", next)
	}
	if tick, _ := s.due(time.Now()); !tick.IsZero() {
		t.Errorf("tick %v of a schedule without any", tick)
	}
}

// TestLook: the first tick is the moment itself, in both orders, and only once.
func TestLook(t *testing.T) {
	t.Parallel()
	began := clock("10:00:00.5")
	s := &ticks{schedule: secondly(t, "* * * * * *"), look: true}
	if next := s.next(began, began); !next.Equal(began) {
		t.Fatalf("first tick at %v, want the present", next)
	}
	if tick, look := s.due(began.Add(1)); !look {
		t.Errorf("job first: tick %v is not the one to look", tick)
	}
	s.next(began.Add(1), began.Add(1))
	if tick, look := s.due(began.Add(2)); !look {
		t.Errorf("scheduler first: tick %v is not the one to look", tick)
	}
	if tick, look := s.due(clock("10:00:01.001")); look || !tick.Equal(clock("10:00:01")) {
		t.Errorf("then tick %v, to look: %v; want 10:00:01", tick, look)
	}
	s.next(clock("10:00:01.1"), clock("10:00:01.1"))
	if _, look := s.due(clock("10:00:01.2")); look {
		t.Error("it looks again")
	}
}

// TestManyInTheSameSecond: jobs and the scheduler race, as they do when thousands of entries fire together.
func TestManyInTheSameSecond(t *testing.T) {
	t.Parallel()
	const entries, rounds = 5000, 4
	all := make([]*ticks, entries)
	now := clock("10:00:00.5")
	for i := range all {
		all[i] = &ticks{schedule: secondly(t, "@every 1s")}
		all[i].next(now, now)
	}
	for round := range rounds {
		want, now := clock("10:00:01").Add(time.Duration(round)*time.Second), now.Add(time.Duration(round+1)*time.Second)
		var jobs sync.WaitGroup
		for _, s := range all {
			jobs.Go(func() {
				if tick, _ := s.due(now); !tick.Equal(want) {
					t.Errorf("round %d: tick %v, want %v", round, tick, want)
				}
			})
			s.next(now, now)
		}
		jobs.Wait()
	}
}
