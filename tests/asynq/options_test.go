package asynq_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
)

// TestOptionsThatMakeNoSense: each is refused by both guards, and the message names it.
func TestOptionsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for want, opt := range map[string]asynqlock.Option{
		"WithTTL(1m0s)":    asynqlock.WithTTL(time.Minute),
		"WithTTL(24h0m0s)": asynqlock.WithTTL(24 * time.Hour),
		"WithTTL(0s)":      asynqlock.WithTTL(0),
		"WithTTL(-1s)":     asynqlock.WithTTL(-time.Second),
		"WithMaxHold(-1s)": asynqlock.WithLock(core.WithMaxHold(-time.Second)),
		"WithWait(0s)":     asynqlock.WithWait(0),
		"WithWait(5ns): at least 1ms is needed; is the unit missing": asynqlock.WithWait(5),
		"WithFinishTimeout(2ns): at least 1ms":                       asynqlock.WithFinishTimeout(2),
		"WithWait(-1s)":                                              asynqlock.WithWait(-time.Second),
		"WithRetryIn(0s)":                                            asynqlock.WithRetryIn(0),
		"WithRetryIn(9000h0m0s)":                                     asynqlock.WithRetryIn(9000 * time.Hour),
		"WithMaxBusy(0s)":                                            asynqlock.WithMaxBusy(0),
		"WithZombieGrace(0s)":                                        asynqlock.WithZombieGrace(0),
		"WithCommitMargin(-2s)":                                      asynqlock.WithCommitMargin(-2 * time.Second),
		"WithKeySecret: 15 bytes":                                    asynqlock.WithKeySecret(make([]byte, 15)),
		"WithRetryIn(30ns): at least 1ms":                            asynqlock.WithRetryIn(30),
		"WithMaxBusy(30ns): at least 1ms":                            asynqlock.WithMaxBusy(30),
		"WithZombieGrace(30ns): at least 1ms":                        asynqlock.WithZombieGrace(30),
		"WithCommitMargin(30ns): at least 1ms":                       asynqlock.WithCommitMargin(30),
		"WithRuns: it is nil":                                        asynqlock.WithRuns(nil),
		"WithFinishTimeout(0s)":                                      asynqlock.WithFinishTimeout(0),
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
		"WithRetention(0s)":                           {asynqlock.WithRetention(0)},
		"WithMaxResult(-1)":                           {asynqlock.WithMaxResult(-1)},
		"FailOpen with AtMostOnce":                    {asynqlock.FailOpen(), asynqlock.AtMostOnce()},
		"IgnorePayload and ComparePayload contradict": {asynqlock.ComparePayload(), asynqlock.IgnorePayload()},
		"ComparePayload: IgnorePayload and Compare":   {asynqlock.IgnorePayload(), asynqlock.ComparePayload()},
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
	_, err := asynqlock.NewOnce(d.locks, asynqlock.ByTaskID(), asynqlock.WithWait(-1), asynqlock.WithTTL(time.Hour),
		asynqlock.WithWait(time.Second))
	if err == nil || !strings.Contains(err.Error(), "WithWait(-1ns)") {
		t.Errorf("%v", err)
	}
}

// TestExclusiveKeepsNoRecords: what is about records is refused, by name.
func TestExclusiveKeepsNoRecords(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name, opt := range map[string]asynqlock.Option{
		"WithRetention":     asynqlock.WithRetention(time.Hour),
		"AtMostOnce":        asynqlock.AtMostOnce(),
		"IgnorePayload":     asynqlock.IgnorePayload(),
		"ComparePayload":    asynqlock.ComparePayload(),
		"WithMaxResult":     asynqlock.WithMaxResult(1),
		"WithFinishTimeout": asynqlock.WithFinishTimeout(time.Second),
		"SkipDuplicates":    asynqlock.SkipDuplicates(),
		"RejectDuplicates":  asynqlock.RejectDuplicates(),
	} {
		_, err := asynqlock.NewExclusive(d.locks.Mutex, asynqlock.ByTaskID(), opt)
		if err == nil || !strings.Contains(err.Error(), name+" is for Once") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := asynqlock.NewOnce(d.locks, asynqlock.ByTaskID(), opt); err != nil {
			t.Errorf("%s: Once: %v", name, err)
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
		make func() (asynq.MiddlewareFunc, error)
		must func() asynq.MiddlewareFunc
	}{
		"client": {
			"the client is nil", func() (asynq.MiddlewareFunc, error) { return asynqlock.NewOnce(nil, id) },
			func() asynq.MiddlewareFunc { return asynqlock.Once(nil, id) },
		},
		"strategy": {
			"the strategy is nil", func() (asynq.MiddlewareFunc, error) { return asynqlock.NewExclusive(nil, id) },
			func() asynq.MiddlewareFunc { return asynqlock.Exclusive(nil, id) },
		},
		"n of a semaphore": {
			"n = 0", func() (asynq.MiddlewareFunc, error) { return asynqlock.NewExclusive(d.locks.Limit(0), id) },
			func() asynq.MiddlewareFunc { return asynqlock.Exclusive(d.locks.Limit(0), id) },
		},
		"key of Once": {
			"the key function is nil", func() (asynq.MiddlewareFunc, error) { return asynqlock.NewOnce(d.locks, nil) },
			func() asynq.MiddlewareFunc { return asynqlock.Once(d.locks, nil) },
		},
		"key of Exclusive": {
			"the key function is nil",
			func() (asynq.MiddlewareFunc, error) { return asynqlock.NewExclusive(d.locks.Mutex, nil) },
			func() asynq.MiddlewareFunc { return asynqlock.Exclusive(d.locks.Mutex, nil) },
		},
	} {
		if m, err := test.make(); m != nil || err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if got := panicOf(func() { test.must() }); !strings.Contains(got, test.want) {
			t.Errorf("%s: panic %q", name, got)
		}
	}
}

// TestOptionsThatSayNothing: nil options and a nil logger are allowed.
func TestOptionsThatSayNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	guard := asynqlock.Once(d.locks, asynqlock.ByTaskID(), nil, asynqlock.WithLogger(nil), asynqlock.WithHooks(asynqlock.Hooks{}))
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
		"of WithLock":   {asynqlock.WithLock(core.WithTTL(time.Hour))},
		"fixed":         {asynqlock.WithLock(core.WithFixedTTL(time.Hour)), asynqlock.WithTTL(20 * time.Second)},
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
		"WithTTL": asynqlock.WithTTL, "WithWait": asynqlock.WithWait, "WithRetryIn": asynqlock.WithRetryIn, "WithMaxBusy": asynqlock.WithMaxBusy,
		"WithZombieGrace": asynqlock.WithZombieGrace, "WithCommitMargin": asynqlock.WithCommitMargin,
		"WithRetention": asynqlock.WithRetention, "WithFinishTimeout": asynqlock.WithFinishTimeout,
	} {
		_, err := asynqlock.NewOnce(d.locks, asynqlock.ByTaskID(), of(30))
		if err == nil || !strings.Contains(err.Error(), option+"(30ns)") || !strings.Contains(err.Error(), "did you mean 30*time.Second?") {
			t.Errorf("%s: %v", option, err)
		}
	}
}

// TestRetryDelay: a deferred task has the delay of its error, and every other one that of the given function.
func TestRetryDelay(t *testing.T) {
	t.Parallel()
	minutes := asynqlock.RetryDelay(func(n int, _ error, _ *asynq.Task) time.Duration { return time.Duration(n) * time.Minute })
	if d := minutes(3, errOwn, receipt("7")); d != 3*time.Minute {
		t.Errorf("failed task: %v", d)
	}
	for name, delay := range map[string]asynq.RetryDelayFunc{"given": minutes, "nil": asynqlock.RetryDelay(nil)} {
		if d := delay(3, deferredBy(core.ErrNotAcquired), receipt("7")); d != 7*time.Second {
			t.Errorf("%s: deferred task: %v", name, d)
		}
	}
	if d := asynqlock.RetryDelay(nil)(2, errOwn, receipt("7")); d < 15*time.Second { // the minimum of asynq's own function
		t.Errorf("failed task without a function: %v", d)
	}
}
