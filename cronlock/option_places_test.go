package cronlock_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestOptionsOfEachPlace: each place takes the options that make sense there, and refuses the others with an error that names
// the option and the place.
func TestOptionsOfEachPlace(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	jobs := "cronlock.AddFunc cronlock.AddJob cronlock.AddSchedule"
	locking := jobs + " cronlock.Exclusive"
	all := locking + " cronlock.Leader"
	options := map[string]struct {
		option cronlock.Option
		places string
	}{
		"core.WithTTL":        {core.WithTTL(time.Second), locking},
		"core.WithWait":       {core.WithWait(time.Second), locking},
		"core.WithMaxHold":    {core.WithMaxHold(time.Second), locking},
		"core.WithMinHold":    {core.WithMinHold(time.Second), locking},
		"core.WithReplicaAck": {core.WithReplicaAck(1, time.Millisecond), locking},
		"core.WithFixedTTL":   {core.WithFixedTTL(time.Second), "cronlock.Exclusive"},
		"core.WithPermits":    {core.WithPermits(1), "cronlock.Exclusive"},
		"core.WithOwner":      {core.WithOwner("me"), ""},

		"core.WithRetention":     {core.WithRetention(time.Hour), ""},
		"core.WithFingerprint":   {core.WithFingerprint([]byte("x")), ""},
		"core.WithFailurePolicy": {core.WithFailurePolicy(core.RetryFailures), ""},
		"core.WithMaxValue":      {core.WithMaxValue(1), ""},
		"core.WithProof":         {core.WithProof(noProof{}), jobs},
		"core.WithGroup":         {core.WithGroup(), ""},
		"core.WithQuota":         {core.WithQuota(1), ""},
		"core.WithWindow":        {core.WithWindow(time.Time{}, time.Time{}), ""},
		"core.WithNote":          {core.WithNote("note"), ""},
		"core.WithLabel":         {core.WithLabel("label"), ""},
		"core.WithEncoding":      {core.WithEncoding(json.Marshal, json.Unmarshal), ""},

		"FailOpen":        {cronlock.FailOpen(), locking},
		"WithZombieGrace": {cronlock.WithZombieGrace(time.Second), locking},

		"cronlock.WithContext":       {cronlock.WithContext(t.Context()), all},
		"cronlock.WithService":       {cronlock.WithService("a"), all},
		"cronlock.WithTimeout":       {cronlock.WithTimeout(time.Second), all},
		"cronlock.AllowOverlap":      {cronlock.AllowOverlap(), jobs},
		"cronlock.WithStartDeadline": {cronlock.WithStartDeadline(time.Minute), jobs},
		"cronlock.WithMaxSkew":       {cronlock.WithMaxSkew(time.Second), jobs},
		"cronlock.WithFailover":      {cronlock.WithFailover(2), jobs},
		"cronlock.WithCatchUp":       {cronlock.WithCatchUp(time.Hour), jobs},
		"cronlock.WithHistory":       {cronlock.WithHistory(2), jobs},
		"cronlock.WithLeader":        {cronlock.WithLeader(locks.Election("e")), jobs},
	}
	for _, name := range coretest.OptionNames(t) {
		if _, there := options[name]; !there {
			t.Errorf("%s is not tested", name)
		}
	}
	run := contextJob(func(context.Context) error { return nil })
	places := map[string]func(...cronlock.Option) error{
		"cronlock.AddFunc": func(opts ...cronlock.Option) error {
			return second(cronlock.AddFunc(cron.New(), locks, "0 3 * * *", "job", idle, opts...))
		},
		"cronlock.AddJob": func(opts ...cronlock.Option) error {
			return second(cronlock.AddJob(cron.New(), locks, "0 3 * * *", "job", run, opts...))
		},
		"cronlock.AddSchedule": func(opts ...cronlock.Option) error {
			return second(cronlock.AddSchedule(cron.New(), locks, after(time.Hour), "job", idle, opts...))
		},
		"cronlock.Exclusive": func(opts ...cronlock.Option) error {
			_, err := cronlock.NewExclusive(locks.Limit(1), "job", opts...)
			return err
		},
		"cronlock.Leader": func(opts ...cronlock.Option) error {
			_, err := cronlock.NewLeader(locks.Election("e"), opts...)
			return err
		},
	}
	for place, build := range places {
		for name, o := range options {
			opts := []cronlock.Option{o.option}
			if name == "WithZombieGrace" && place != "cronlock.Leader" {
				opts = append(opts, cronlock.WithTimeout(time.Second))
			}
			err := build(opts...)
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

// noProof is a proof that is not asked.
type noProof struct{ core.Proof }

func (noProof) OnlyEffect() bool { return false }
