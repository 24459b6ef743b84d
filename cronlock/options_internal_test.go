package cronlock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestSameAnswerAtEveryTime: whether options are refused does not depend on when the job is added. The time to the next
// tick is no measure of a period.
func TestSameAnswerAtEveryTime(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		spec   string
		opts   []Option
		refuse string // the option that the error names, if there is to be one
	}{
		{"0 * * * * *", []Option{WithCatchUp(24 * time.Hour)}, ""},
		{"0 0 3 * * *", []Option{WithCatchUp(365 * 24 * time.Hour)}, ""},
		{"0 * * 7 * *", []Option{WithCatchUp(24 * time.Hour)}, ""},
		{"0 * * * 7 *", []Option{WithCatchUp(14 * 24 * time.Hour)}, "WithCatchUp"}, // each minute of July
		{"0 * * * * *", []Option{WithCatchUp(7 * 24 * time.Hour)}, "WithCatchUp"},
		{"* * * * * *", []Option{WithStartDeadline(3 * time.Hour)}, "WithStartDeadline"},
		{"* * 0-5 * * *", []Option{WithStartDeadline(3 * time.Hour)}, "WithStartDeadline"}, // each second of the night
		{"* * * * * *", []Option{WithMaxSkew(24 * time.Hour)}, "WithMaxSkew"},
		{"0 0 0 30 2 *", []Option{WithCatchUp(365 * 24 * time.Hour)}, ""},
	} {
		step := time.Duration(testkit.Rounds(5, 1)) * 97 * time.Minute
		for now := clock("00:00:00.5"); now.Before(clock("23:59:59")); now = now.Add(step) {
			config, err := newConfig(jobPlace("cronlock.AddFunc"), test.opts)
			if err != nil {
				t.Fatal(err)
			}
			j := newJob("job", nil, config, seal.Facts{})
			j.schedule = secondly(t, test.spec)
			err = j.checkWindow(now)
			if (err != nil) != (test.refuse != "") || err != nil && !strings.Contains(err.Error(), test.refuse+"(") {
				t.Errorf("%s at %v: error %v, want %q", test.spec, now, err, test.refuse)
			}
		}
	}
}

// TestWindowOfOtherSchedules: those without ticks at a fixed time of the past are counted from now, and others do not
// count more than has to be.
func TestWindowOfOtherSchedules(t *testing.T) {
	t.Parallel()
	start := clock("10:00:00")
	later := scheduleFunc(func(t time.Time) time.Time {
		if t.Before(start) && t.After(start.Add(-time.Hour)) {
			return start
		} else if t.Before(start) {
			return time.Time{}
		}
		return short(time.Millisecond).Next(t)
	})
	config, err := newConfig(jobPlace("cronlock.AddFunc"), nil)
	if err != nil {
		t.Fatal(err)
	}
	j := newJob("job", nil, config, seal.Facts{})
	j.schedule = later
	if err := j.checkWindow(start); err == nil {
		t.Error("50,000 ticks within the start deadline and the skew are accepted")
	}
	asked := &asking{Schedule: short(time.Nanosecond)}
	j.schedule = asked
	if err := j.checkWindow(start); err == nil || asked.n > mostRemembered+10 {
		t.Errorf("error %v after %d steps", err, asked.n)
	}
}

type scheduleFunc func(time.Time) time.Time

func (f scheduleFunc) Next(t time.Time) time.Time { return f(t) }

// TestRunOutOfTurnIsRemembered for as long as a tick would be, however soon the next one comes.
func TestRunOutOfTurnIsRemembered(t *testing.T) {
	t.Parallel()
	daily := secondly(t, "0 0 3 * * *")
	for _, now := range []string{"02:59:59", "03:00:00", "14:00:00"} {
		if got := currentPeriod(daily, clock(now)); got != 24*time.Hour {
			t.Errorf("at %s the period is %v", now, got)
		}
	}
}

// TestBrokenParsers: what a parser or a schedule does wrong is an error when the job is added.
func TestBrokenParsers(t *testing.T) {
	t.Parallel()
	fn := func(context.Context) error { return nil }
	parse := func(s cron.Schedule) cron.ScheduleParser {
		return parserFunc(func(string) (cron.Schedule, error) { return s, nil })
	}
	for name, parser := range map[string]cron.ScheduleParser{
		"neither":     parse(nil),
		"nil pointer": parse((*cron.SpecSchedule)(nil)),
		"no paper":    parserFunc(func(string) (cron.Schedule, error) { panic("no paper") }),
		"panics":      parse(scheduleFunc(func(time.Time) time.Time { panic("no ink") })),
		"not later":   parse(scheduleFunc(func(t time.Time) time.Time { return t })),
		"dereference": parse(scheduleFunc(nil)),
	} {
		c := cron.New(cron.WithParser(parser))
		_, err := AddFunc(c, closedClient(t), "@hourly", "job", fn)
		if !errors.Is(err, core.ErrInvalidOption) || !strings.Contains(err.Error(), name) || len(c.Entries()) != 0 {
			t.Errorf("%s: error %v, %d entries", name, err, len(c.Entries()))
		}
	}
	if _, err := AddSchedule(cron.New(), closedClient(t), (*cron.SpecSchedule)(nil), "job", fn); err == nil {
		t.Error("a nil pointer is taken for a schedule")
	}
}

type parserFunc func(string) (cron.Schedule, error)

func (f parserFunc) Parse(spec string) (cron.Schedule, error) { return f(spec) }
