package cronlock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestDurationsWithoutUnit: the error of each option says what was probably meant by a number without a unit.
func TestDurationsWithoutUnit(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	for option, of := range map[string]func(time.Duration) cronlock.Option{
		"WithWait": cronlock.WithWait, "WithStartDeadline": cronlock.WithStartDeadline, "WithMaxSkew": cronlock.WithMaxSkew,
		"WithCatchUp": cronlock.WithCatchUp, "WithTTL": cronlock.WithTTL, "WithMaxHold": cronlock.WithMaxHold,
		"WithMinHold":     cronlock.WithMinHold,
		"WithZombieGrace": func(d time.Duration) cronlock.Option { return cronlock.WithZombieGrace(d) },
	} {
		opts := []cronlock.Option{of(30)}
		if option == "WithZombieGrace" {
			opts = append([]cronlock.Option{cronlock.WithMaxHold(time.Minute)}, opts...)
		}
		_, err := cronlock.AddFunc(cron.New(), locks, "@daily", "job", idle, opts...)
		if err == nil || !strings.Contains(err.Error(), option+"(30ns)") || !strings.Contains(err.Error(), "did you mean 30*time.Second?") {
			t.Errorf("%s: %v", option, err)
		}
	}
}
