package guard_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// set makes an option of a place whose own options amount to a number.
func set(name string, to int) guard.Option {
	return guard.Own(name, func(n *int) error {
		*n = to
		return nil
	})
}

// place takes what a guard with a record may take.
var place = guard.Place{
	Name: "pkg.Once",
	Takes: []string{
		"core.WithTTL", "core.WithWait", "core.WithMinHold", "core.WithRetention", "core.WithFailurePolicy", "core.WithMaxValue",
		"FailOpen", "OptionalKey", "WithKeySecret", "WithAskTimeout", "WithFinishTimeout", "WithZombieGrace", "pkg.Own",
	},
	Refuses:   map[string]string{"core.WithOwner": "a reason of its own"},
	Otherwise: "the usual reason",
}

// TestSort: an adapter gets each option in turn, nil ones excepted, and the sum of core's and the shared ones.
func TestSort(t *testing.T) {
	t.Parallel()
	var own int
	c, err := guard.Sort(place, []guard.Option{
		core.WithTTL(time.Second), nil,
		set("pkg.Own", 3),
		core.WithWait(time.Minute), core.WithMinHold(time.Hour),
		core.WithRetention(2 * time.Hour), core.WithFailurePolicy(core.HoldFailures), core.WithMaxValue(7), core.WithTTL(2 * time.Second),
		guard.OptionalKey(), guard.WithKeySecret(make([]byte, 16)), guard.WithFinishTimeout(time.Second), guard.WithAskTimeout(time.Minute),
	}, &own)
	if err != nil || own != 3 {
		t.Fatalf("own option %d, %v", own, err)
	}
	if last := c.LastGiven("core.WithWait", "pkg.Own", "core.WithOwner"); last != "core.WithWait" || c.LastGiven("core.WithOwner") != "" {
		t.Errorf("last given %q", last)
	}
	if c.TTL != 2*time.Second || c.Wait != time.Minute || c.MinHold != time.Hour || c.Retention != 2*time.Hour ||
		c.FailurePolicy != core.HoldFailures || c.FailOpen || !c.OptionalKey || len(c.KeySecret) != 16 ||
		c.FinishTimeout != time.Second || c.AskTimeout != time.Minute || c.MaxValue != 7 || c.ZombieGrace != 2*time.Minute {
		t.Errorf("%+v", c)
	}
	if len(c.Lock) != 3 || len(c.Once) != 5 { // not the wait, and no minimum hold of a record
		t.Errorf("%d lock options, %d of records", len(c.Lock), len(c.Once))
	}
	if !c.Given("core.WithWait") || c.Given("WithZombieGrace") {
		t.Errorf("given %v, %v", c.Given("core.WithWait"), c.Given("WithZombieGrace"))
	}
	if left := guard.Without(c.Lock, "core.WithTTL"); len(left) != 1 || len(c.Lock) != 3 {
		t.Errorf("%d left of %d", len(left), len(c.Lock))
	}
	if err := errors.Join(seal.CheckOptions(c.Lock...), seal.CheckOnceOptions(c.Once...)); err != nil {
		t.Error(err)
	}
}

// TestSortRefuses: the error names the first option that is wrong, and the place of one that makes no sense there.
func TestSortRefuses(t *testing.T) {
	t.Parallel()
	for want, opts := range map[string][]guard.Option{
		"pkg.Once does not take core.WithOwner: a reason of its own": {core.WithTTL(time.Second), core.WithOwner("me")},
		"pkg.Once does not take core.WithNote: the usual reason":     {core.WithNote("note"), core.WithTTL(0)},
		"pkg.Once does not take other.Own: the usual reason":         {set("other.Own", 1)},
		"WithTTL(0s)":             {core.WithTTL(0), core.WithTTL(time.Second)},
		"WithRetention(0s)":       {core.WithRetention(0)},
		"WithKeySecret: 15 bytes": {guard.WithKeySecret(make([]byte, 15))},
		"WithFinishTimeout(5ns): 1ms to 8760h0m0s is allowed; is the unit missing": {guard.WithFinishTimeout(5)},
		"WithZombieGrace(0s)":                       {guard.WithZombieGrace(0)},
		"pkg.Once: FailOpen with core.HoldFailures": {core.WithFailurePolicy(core.HoldFailures), guard.FailOpen()},
	} {
		_, err := guard.Sort(place, opts, new(int))
		if !errors.Is(err, core.ErrInvalidOption) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// TestOwnOptions: a place gets its own options with the values that they set, in order, and the first error of one.
func TestOwnOptions(t *testing.T) {
	t.Parallel()
	type settings struct{ said []int }
	say := func(n int) guard.Option {
		return guard.Own("pkg.Say", func(s *settings) error {
			if s.said = append(s.said, n); n < 0 {
				return fmt.Errorf("%w: pkg.Say(%d)", core.ErrInvalidOption, n)
			}
			return nil
		})
	}
	place := guard.Place{
		Name: "pkg.Once", Takes: append(slices.Clip(guard.OnceTakes), "pkg.Say"),
		Refuses: map[string]string{"core.WithWait": "it never waits"},
	}
	var s settings
	c, err := guard.Sort(place, []guard.Option{say(1), core.WithTTL(time.Second), nil, say(2)}, &s)
	if err != nil || c.TTL != time.Second || !slices.Equal(s.said, []int{1, 2}) {
		t.Errorf("%v, TTL %v, said %v", err, c.TTL, s.said)
	}
	for _, test := range []struct {
		opt  guard.Option
		want string
	}{
		{say(-1), "pkg.Say(-1)"},
		{core.WithWait(time.Second), "it never waits"},
		{core.WithOwner("o"), "every run has an owner of its own"},
		{guard.WithZombieGrace(time.Minute), "pkg.Once does not take WithZombieGrace"},
	} {
		if _, err := guard.Sort(place, []guard.Option{test.opt}, &s); !errors.Is(err, core.ErrInvalidOption) ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %q", err, test.want)
		}
	}
}
