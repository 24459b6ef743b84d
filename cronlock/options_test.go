package cronlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestInvalidOptions: each is refused when the job is added, by its name, and nothing is added.
func TestInvalidOptions(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	var noContext context.Context
	for _, test := range []struct {
		names string
		opts  []cronlock.Option
	}{
		{"WithContext", []cronlock.Option{cronlock.WithContext(noContext)}},
		{"WithService", []cronlock.Option{cronlock.WithService("")}},
		{"WithService", []cronlock.Option{cronlock.WithService(strings.Repeat("x", 101))}},
		{"WithWait", []cronlock.Option{core.WithWait(-1)}},
		{"is the unit missing", []cronlock.Option{core.WithWait(5)}},
		{"is the unit missing", []cronlock.Option{cronlock.WithTimeout(30)}},
		{"is the unit missing", []cronlock.Option{cronlock.WithMaxSkew(30)}},
		{"is the unit missing", []cronlock.Option{cronlock.WithTimeout(time.Second), cronlock.WithZombieGrace(30)}},
		{"WithStartDeadline", []cronlock.Option{cronlock.WithStartDeadline(0)}},
		{"WithStartDeadline", []cronlock.Option{cronlock.WithStartDeadline(1 << 62)}},
		{"WithMaxSkew", []cronlock.Option{cronlock.WithMaxSkew(-time.Second)}},
		{"WithFailover", []cronlock.Option{cronlock.WithFailover(0)}},
		{"WithCatchUp", []cronlock.Option{cronlock.WithCatchUp(0)}},
		{"WithHistory", []cronlock.Option{cronlock.WithHistory(0)}},
		{"WithHistory", []cronlock.Option{cronlock.WithHistory(10_001)}},
		{"WithTTL", []cronlock.Option{core.WithTTL(time.Microsecond)}},
		{"WithMaxHold", []cronlock.Option{core.WithMaxHold(-1)}},
		{"WithTimeout", []cronlock.Option{cronlock.WithTimeout(-1)}},
		{"WithReplicaAck", []cronlock.Option{core.WithTTL(time.Second), core.WithReplicaAck(1, time.Second)}},
		{"WithMinHold", []cronlock.Option{core.WithMinHold(-1)}},
		{"AllowOverlap", []cronlock.Option{core.WithMinHold(time.Second), cronlock.AllowOverlap()}},
		{"WithZombieGrace", []cronlock.Option{cronlock.WithTimeout(time.Second), cronlock.WithZombieGrace(-1)}},
		{"WithZombieGrace", []cronlock.Option{cronlock.WithZombieGrace(time.Second)}},
		{"WithFailover", []cronlock.Option{cronlock.WithFailover(2), cronlock.WithStartDeadline(30 * time.Second)}},
		{
			"WithFailover",
			[]cronlock.Option{
				cronlock.WithFailover(2), core.WithTTL(time.Minute), cronlock.WithStartDeadline(40 * time.Second),
			},
		},
		{"WithLeader", []cronlock.Option{cronlock.WithLeader(nil)}},
		{"invalid name", []cronlock.Option{cronlock.WithLeader(locks.Election(""))}},
		{"WithLeader", []cronlock.Option{cronlock.WithLeader(locks.Election("e")), cronlock.WithFailover(2)}},
		{"WithLeader", []cronlock.Option{cronlock.WithLeader(locks.Election("e")), cronlock.WithCatchUp(time.Hour)}},
		{"WithMaxSkew", []cronlock.Option{cronlock.WithMaxSkew(30 * 24 * time.Hour)}},
		{"WithCatchUp", []cronlock.Option{cronlock.WithCatchUp(30 * 24 * time.Hour)}},
		{"WithStartDeadline", []cronlock.Option{cronlock.WithStartDeadline(30 * 24 * time.Hour)}},
	} {
		c := cron.New()
		_, err := cronlock.AddFunc(c, locks, "* * * * *", "job", idle, append(test.opts, nil)...)
		if !isInvalid(err) || !strings.Contains(err.Error(), test.names) || !strings.HasPrefix(err.Error(), "holdfast: ") {
			t.Errorf("%s: error %v", test.names, err)
		}
		if n := len(c.Entries()); n != 0 {
			t.Errorf("%s: %d entries", test.names, n)
		}
	}
}

// isInvalid reports whether an error is about an argument or an option.
func isInvalid(err error) bool {
	return errors.Is(err, core.ErrInvalidOption) || errors.Is(err, core.ErrInvalidName)
}

// TestInvalidArguments: as soon as the job is added.
func TestInvalidArguments(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	long := strings.Repeat("x", 200)
	add := func(c *cron.Cron, locks *core.Client, spec, name string, fn func(context.Context) error) error {
		return second(cronlock.AddFunc(c, locks, spec, name, fn))
	}
	for name, err := range map[string]error{
		"cron":         add(nil, locks, "@hourly", "job", idle),
		"client":       add(cron.New(), nil, "@hourly", "job", idle),
		"function":     add(cron.New(), locks, "@hourly", "job", nil),
		"no name":      add(cron.New(), locks, "@hourly", "", idle),
		"braces":       add(cron.New(), locks, "@hourly", "a{b}", idle),
		"NUL":          add(cron.New(), locks, "@hourly", "a\x00", idle),
		"at most 200":  add(cron.New(), locks, "@hourly", long+"x", idle),
		"fields":       add(cron.New(), locks, "* *", "job", idle),
		"empty spec":   add(cron.New(), locks, "", "job", idle),
		`"TZ=UTC"`:     add(cron.New(), locks, "TZ=UTC", "job", idle),
		"bad location": add(cron.New(), locks, "TZ=Atlantis * * * * *", "job", idle),
		"schedule":     second(cronlock.AddSchedule(cron.New(), locks, nil, "job", idle)),
		"the cron":     second(cronlock.AddSchedule(nil, locks, after(1), "job", idle)),
		"job is nil":   second(cronlock.AddJob(cron.New(), locks, "@hourly", "job", nil)),
	} {
		if !isInvalid(err) || !strings.Contains(err.Error(), name) || !strings.HasPrefix(err.Error(), "holdfast: invalid ") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if err := add(cron.New(), locks, "@hourly", long, idle); err != nil {
		t.Errorf("the longest name: %v", err)
	}
	c := cron.New()
	if err := errors.Join(add(c, locks, "@hourly", "job", idle), add(c, locks, "@daily", "other", idle)); err != nil {
		t.Error(err)
	}
	if err := add(c, locks, "@hourly", "job", idle); !errors.Is(err, core.ErrInvalidName) || !strings.Contains(err.Error(), `"job"`) {
		t.Errorf("the same name again: %v", err)
	}
}

// TestParsers: the cron's parser reads the spec, also while the cron runs.
func TestParsers(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	c := cron.New(cron.WithSeconds())
	c.Start()
	defer c.Stop()
	if _, err := cronlock.AddFunc(c, locks, "0 0 3 * * *", "seconds", idle); err != nil {
		t.Error(err)
	}
	if n := len(c.Entries()); n != 1 {
		t.Errorf("%d entries, want the job alone", n)
	}
}

// TestAddJob calls the method of a job that can be told to stop, and Run of others.
func TestAddJob(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	c := cron.New()
	var ran []string
	for name, job := range map[string]cron.Job{
		"plain":   cron.FuncJob(func() { ran = append(ran, "plain") }),
		"context": contextJob(func(context.Context) error { ran = append(ran, "context"); return nil }),
	} {
		if _, err := cronlock.AddJob(c, locks, "0 3 * * *", name, job); err != nil {
			t.Fatal(err)
		}
		cronlock.Fire(c, name, time.Now().Truncate(time.Second))
	}
	if len(ran) != 2 || ran[0] == ran[1] {
		t.Errorf("ran %q", ran)
	}
}

// TestDurationsWithoutUnit: the error of each option says what was probably meant by a number without a unit.
func TestDurationsWithoutUnit(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	for option, of := range map[string]func(time.Duration) cronlock.Option{
		"WithWait":          func(d time.Duration) cronlock.Option { return core.WithWait(d) },
		"WithTTL":           func(d time.Duration) cronlock.Option { return core.WithTTL(d) },
		"WithMaxHold":       func(d time.Duration) cronlock.Option { return core.WithMaxHold(d) },
		"WithMinHold":       func(d time.Duration) cronlock.Option { return core.WithMinHold(d) },
		"WithStartDeadline": cronlock.WithStartDeadline, "WithMaxSkew": cronlock.WithMaxSkew,
		"WithCatchUp": cronlock.WithCatchUp, "WithTimeout": cronlock.WithTimeout, "WithZombieGrace": cronlock.WithZombieGrace,
	} {
		opts := []cronlock.Option{of(30)}
		if option == "WithZombieGrace" {
			opts = append([]cronlock.Option{cronlock.WithTimeout(time.Minute)}, opts...)
		}
		_, err := cronlock.AddFunc(cron.New(), locks, "@daily", "job", idle, opts...)
		if err == nil || !strings.Contains(err.Error(), option+"(30ns)") || !strings.Contains(err.Error(), "did you mean 30*time.Second?") {
			t.Errorf("%s: %v", option, err)
		}
	}
}

// TestNoTick: a spec that no date fits is logged when its job is added, because the scheduler never starts it. Others are
// not.
func TestNoTick(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	for spec, never := range map[string]bool{"0 0 30 2 *": true, "0 0 31 4 *": true, "0 0 29 2 *": false, "@every 5m": false} {
		var logged logBuffer
		if _, err := cronlock.AddFunc(cron.New(), newClient(t, rdb, logTo(&logged)), spec, "job", idle); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(logged.String(), "the schedule has no tick to come"); got != never {
			t.Errorf("%s: logged %q", spec, logged.String())
		}
	}
}
