package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestDurationsWithoutUnit: a number without a unit is one of nanoseconds. The error of each option says what was probably meant.
func TestDurationsWithoutUnit(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	for option, use := range map[string]func(d time.Duration) core.Option{
		"WithTTL":         func(d time.Duration) core.Option { return core.WithTTL(d) },
		"WithFixedTTL":    func(d time.Duration) core.Option { return core.WithFixedTTL(d) },
		"WithWait":        func(d time.Duration) core.Option { return core.WithWait(d) },
		"WithMaxHold":     func(d time.Duration) core.Option { return core.WithMaxHold(d) },
		"WithMinHold":     func(d time.Duration) core.Option { return core.WithMinHold(d) },
		"WithReplicaAck":  func(d time.Duration) core.Option { return core.WithReplicaAck(1, d) },
		"WithWaitWarning": core.WithWaitWarning, "WithHoldWarning": core.WithHoldWarning,
		"WithNodeTimeout": core.WithNodeTimeout, "WithRestartDelay": core.WithRestartDelay,
	} {
		for d, want := range map[time.Duration]string{30: "did you mean 30*time.Second?", 5000: "did you mean 5000*time.Millisecond or 5000*time.Second?"} {
			_, err := core.New(rdb, use(d))
			if !errors.Is(err, core.ErrInvalidOption) || !strings.Contains(err.Error(), option+"(") || !strings.Contains(err.Error(), want) {
				t.Errorf("%s(%v): %v", option, d, err)
			}
		}
	}
	locks := newClient(t, rdb, core.WithTTL(long))
	_, retention := locks.Once("name", core.WithRetention(24)).Begin(context.Background())
	if !strings.Contains(retention.Error(), "did you mean 24*time.Second?") {
		t.Error(retention)
	}
	extend := mustLock(t, locks.Mutex("name")).Extend(context.Background(), 30)
	if !strings.Contains(extend.Error(), "did you mean 30*time.Second?") {
		t.Error(extend)
	}
	for _, meant := range []time.Duration{0, -time.Second, time.Millisecond, 999_999} { // wrong for other reasons
		if _, err := core.New(rdb, core.WithTTL(meant)); err == nil || strings.Contains(err.Error(), "unit") {
			t.Errorf("WithTTL(%v): %v", meant, err)
		}
	}
}
