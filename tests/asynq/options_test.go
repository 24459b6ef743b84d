package asynq_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestOptionsThatMakeNoSense: each is refused by both guards, and the message names it.
func TestOptionsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for want, opt := range map[string]asynqlock.Option{
		"WithTTL(1m0s)":    core.WithTTL(time.Minute),
		"WithTTL(24h0m0s)": core.WithTTL(24 * time.Hour),
		"WithTTL(0s)":      core.WithTTL(0),
		"WithTTL(-1s)":     core.WithTTL(-time.Second),
		"WithMaxHold(-1s)": core.WithMaxHold(-time.Second),
		"WithWait(5ns): 0 or at least 1ms is needed; is the unit missing": core.WithWait(5),
		"WithWait(-1s)":                           core.WithWait(-time.Second),
		"WithRetryIn(0s)":                         asynqlock.WithRetryIn(0),
		"WithRetryIn(9000h0m0s)":                  asynqlock.WithRetryIn(9000 * time.Hour),
		"WithZombieGrace(0s)":                     asynqlock.WithZombieGrace(0),
		"WithKeySecret: 15 bytes":                 asynqlock.WithKeySecret(make([]byte, 15)),
		"WithRetryIn(30ns): 1ms to 8760h0m0s":     asynqlock.WithRetryIn(30),
		"WithZombieGrace(30ns): 1ms to 8760h0m0s": asynqlock.WithZombieGrace(30),
		"WithRuns: it is nil":                     asynqlock.WithRuns(nil),
	} {
		_, once := asynqlock.NewOnce(d.locks, asynqlock.ByTaskID(), opt)
		_, exclusive := asynqlock.NewExclusive(d.locks.Mutex, asynqlock.ByTaskID(), opt)
		for _, err := range []error{once, exclusive} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
	}
}

// TestRecordsThatMakeNoSense: options of Once.
func TestRecordsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for want, opts := range map[string][]asynqlock.Option{
		"WithFinishTimeout(0s)":           {asynqlock.WithFinishTimeout(0)},
		"WithFinishTimeout(2ns): 1ms to":  {asynqlock.WithFinishTimeout(2)},
		"WithRetention(0s)":               {core.WithRetention(0)},
		"WithMaxValue(-1)":                {core.WithMaxValue(-1)},
		"FailOpen with core.HoldFailures": {asynqlock.FailOpen(), core.WithFailurePolicy(core.HoldFailures)},
	} {
		_, err := asynqlock.NewOnce(d.locks, asynqlock.ByTaskID(), opts...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestFirstMistake: of several the first is told, and a correct option does not make up for it.
func TestFirstMistake(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	_, err := asynqlock.NewOnce(d.locks, asynqlock.ByTaskID(), core.WithWait(-1), core.WithTTL(time.Hour),
		core.WithWait(time.Second))
	if err == nil || !strings.Contains(err.Error(), "WithWait(-1ns)") {
		t.Errorf("%v", err)
	}
}

// TestOptionsOfEachPlace: each place takes the options that make sense there, and refuses the others with an error that names
// the option and the place.
func TestOptionsOfEachPlace(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	both := "asynqlock.Once asynqlock.Exclusive"
	options := map[string]struct {
		option asynqlock.Option
		places string
	}{
		"core.WithTTL":        {core.WithTTL(time.Second), both},
		"core.WithWait":       {core.WithWait(time.Second), both},
		"core.WithMaxHold":    {core.WithMaxHold(time.Second), both},
		"core.WithReplicaAck": {core.WithReplicaAck(1, time.Millisecond), both},
		"core.WithMinHold":    {core.WithMinHold(time.Second), "asynqlock.Exclusive"},
		"core.WithPermits":    {core.WithPermits(1), "asynqlock.Exclusive"},
		"core.WithFixedTTL":   {core.WithFixedTTL(time.Second), "asynqlock.Exclusive"},
		"core.WithOwner":      {core.WithOwner("me"), ""},

		"core.WithRetention":     {core.WithRetention(time.Hour), "asynqlock.Once"},
		"core.WithFailurePolicy": {core.WithFailurePolicy(core.HoldFailures), "asynqlock.Once"},
		"core.WithMaxValue":      {core.WithMaxValue(1), "asynqlock.Once"},
		"core.WithProof":         {core.WithProof(noProof{}), "asynqlock.Once"},
		"core.WithFingerprint":   {core.WithFingerprint([]byte("x")), ""},
		"core.WithGroup":         {core.WithGroup(), ""},
		"core.WithQuota":         {core.WithQuota(1), ""},
		"core.WithWindow":        {core.WithWindow(time.Time{}, time.Time{}), ""},
		"core.WithNote":          {core.WithNote("note"), ""},
		"core.WithLabel":         {core.WithLabel("label"), ""},
		"core.WithEncoding":      {core.WithEncoding(json.Marshal, json.Unmarshal), ""},

		"FailOpen":          {asynqlock.FailOpen(), both},
		"OptionalKey":       {asynqlock.OptionalKey(), both},
		"WithKeySecret":     {asynqlock.WithKeySecret(make([]byte, 16)), both},
		"WithZombieGrace":   {asynqlock.WithZombieGrace(time.Second), both},
		"WithFinishTimeout": {asynqlock.WithFinishTimeout(time.Second), both},

		"asynqlock.WithRetryIn":    {asynqlock.WithRetryIn(time.Second), both},
		"asynqlock.WithRuns":       {asynqlock.WithRuns(new(asynqlock.Runs)), both},
		"asynqlock.WithLine":       {asynqlock.WithLine(d.rdb), "asynqlock.Exclusive"},
		"asynqlock.ComparePayload": {asynqlock.ComparePayload(true), "asynqlock.Once"},
		"cronlock.WithHistory":     {cronlock.WithHistory(3), ""},
	}
	for _, name := range coretest.OptionNames(t) {
		if _, there := options[name]; !there {
			t.Errorf("%s is not tested", name)
		}
	}
	id := asynqlock.ByTaskID()
	for place, build := range map[string]func(asynqlock.Option) error{
		"asynqlock.Once": func(o asynqlock.Option) error {
			_, err := asynqlock.NewOnce(d.locks, id, o)
			return err
		},
		"asynqlock.Exclusive": func(o asynqlock.Option) error {
			_, err := asynqlock.NewExclusive(d.locks.Limit(1), id, o)
			return err
		},
	} {
		for name, o := range options {
			err := build(o.option)
			switch takes := strings.Contains(o.places+" ", place+" "); {
			case takes && err != nil:
				t.Errorf("%s with %s: %v", place, name, err)
			case !takes && !errors.Is(err, core.ErrInvalidOption),
				!takes && !strings.Contains(err.Error(), place+" does not take "+name):
				t.Errorf("%s with %s: error %v", place, name, err)
			}
		}
	}
}

// TestWhatIsMissing: nil arguments are refused when the program starts, by errors and by panics.
func TestWhatIsMissing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := asynqlock.ByTaskID()
	for name, test := range map[string]struct {
		want string
		make func() (made bool, err error)
		must func() asynq.MiddlewareFunc
	}{
		"client": {
			"the client is nil", func() (bool, error) { g, err := asynqlock.NewOnce(nil, id); return g != nil, err },
			func() asynq.MiddlewareFunc { return asynqlock.Once(nil, id) },
		},
		"strategy": {
			"the strategy is nil", func() (bool, error) { m, err := asynqlock.NewExclusive(nil, id); return m != nil, err },
			func() asynq.MiddlewareFunc { return asynqlock.Exclusive(nil, id) },
		},
		"n of a semaphore": {
			"n = 0", func() (bool, error) { m, err := asynqlock.NewExclusive(d.locks.Limit(0), id); return m != nil, err },
			func() asynq.MiddlewareFunc { return asynqlock.Exclusive(d.locks.Limit(0), id) },
		},
		"key of Once": {
			"the key function is nil", func() (bool, error) { g, err := asynqlock.NewOnce(d.locks, nil); return g != nil, err },
			func() asynq.MiddlewareFunc { return asynqlock.Once(d.locks, nil) },
		},
		"key of Exclusive": {
			"the key function is nil",
			func() (bool, error) { m, err := asynqlock.NewExclusive(d.locks.Mutex, nil); return m != nil, err },
			func() asynq.MiddlewareFunc { return asynqlock.Exclusive(d.locks.Mutex, nil) },
		},
	} {
		if made, err := test.make(); made || err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if got := panicOf(func() { test.must() }); !strings.Contains(got, test.want) {
			t.Errorf("%s: panic %q", name, got)
		}
	}
}

// TestNilOptions: nil options are allowed.
func TestNilOptions(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	guard := asynqlock.Once(d.locks, asynqlock.ByTaskID(), nil)
	if err := d.deliver(delivery("1"), receipt("7"), nothing, guard); err != nil {
		t.Error(err)
	}
}

// TestTTLOfLock: the lease of a lost task ends before asynq lets it run again, whatever else is said of TTLs.
func TestTTLOfLock(t *testing.T) {
	t.Parallel()
	d := newDesk(t, core.WithTTL(time.Hour))
	for name, opts := range map[string][]asynqlock.Option{
		"of the client": nil,
		"given":         {core.WithTTL(20 * time.Second)},
	} {
		exclusive := asynqlock.Exclusive(d.locks.Mutex, asynqlock.ByTaskID(), opts...)
		once := asynqlock.Once(d.locks, asynqlock.ByTaskID(), opts...)
		busy := d.occupy(delivery(name), receipt(name), exclusive, once)
		var held *core.NotAcquiredError
		err := d.deliver(delivery(name), receipt(name), nothing, exclusive)
		if !errors.As(err, &held) || held.RetryAfter <= 0 || held.RetryAfter > time.Minute {
			t.Errorf("%s: Exclusive: %v", name, err)
		}
		var running *core.InProgressError
		err = d.deliver(delivery(name), receipt(name), nothing, once)
		if !errors.As(err, &running) || running.RetryAfter <= 0 || running.RetryAfter > time.Minute {
			t.Errorf("%s: Once: %v", name, err)
		}
		if err := busy.release(); err != nil {
			t.Error(err)
		}
	}
}

// TestDurationsWithoutUnit: the error of each option says what was probably meant by a number without a unit.
func TestDurationsWithoutUnit(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for option, of := range map[string]func(time.Duration) asynqlock.Option{
		"WithTTL":           func(d time.Duration) asynqlock.Option { return core.WithTTL(d) },
		"WithWait":          func(d time.Duration) asynqlock.Option { return core.WithWait(d) },
		"WithRetention":     func(d time.Duration) asynqlock.Option { return core.WithRetention(d) },
		"WithRetryIn":       asynqlock.WithRetryIn,
		"WithZombieGrace":   asynqlock.WithZombieGrace,
		"WithFinishTimeout": asynqlock.WithFinishTimeout,
	} {
		_, err := asynqlock.NewOnce(d.locks, asynqlock.ByTaskID(), of(30))
		if err == nil || !strings.Contains(err.Error(), option+"(30ns)") || !strings.Contains(err.Error(), "did you mean 30*time.Second?") {
			t.Errorf("%s: %v", option, err)
		}
	}
}

// TestRetryDelay: a deferred task has the delay of its error, and every other one the delay of the given function.
func TestRetryDelay(t *testing.T) {
	t.Parallel()
	cfg := asynq.Config{RetryDelayFunc: func(n int, _ error, _ *asynq.Task) time.Duration { return time.Duration(n) * time.Minute }}
	asynqlock.Configure(&cfg)
	minutes, none := cfg.RetryDelayFunc, configured(nil).RetryDelayFunc
	if d := minutes(3, errOwn, receipt("7")); d != 3*time.Minute {
		t.Errorf("failed task: %v", d)
	}
	for name, delay := range map[string]asynq.RetryDelayFunc{"given": minutes, "nil": none} {
		if d := delay(3, deferredBy(core.ErrNotAcquired), receipt("7")); d != 7*time.Second {
			t.Errorf("%s: deferred task: %v", name, d)
		}
	}
	if d := none(2, errOwn, receipt("7")); d < 15*time.Second { // the minimum of asynq's own function
		t.Errorf("failed task without a function: %v", d)
	}
}

// noProof is a proof that is not asked.
type noProof struct{ core.Proof }

func (noProof) OnlyEffect() bool { return false }
