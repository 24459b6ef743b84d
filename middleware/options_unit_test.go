package middleware_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/middleware"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestDurationsWithoutUnit: the error of each option says what was probably meant by a number without a unit.
func TestDurationsWithoutUnit(t *testing.T) {
	t.Parallel()
	locks, err := core.New(testkit.Start(t).Client())
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close() //nolint:errcheck // it has no lease
	for name, option := range map[string]middleware.Option{
		"WithWait": middleware.WithWait(30), "WithAskTimeout": middleware.WithAskTimeout(30),
		"WithFinishTimeout": middleware.WithFinishTimeout(30), "WithRetention": middleware.WithRetention(30),
		"WithLock": middleware.WithLock(core.WithTTL(30)),
	} {
		config := middleware.OnceConfig()
		config.Apply(nil, option)
		_, err := middleware.NewOnce(locks, config)
		if err == nil || !strings.Contains(err.Error(), time.Duration(30).String()) || !strings.Contains(err.Error(), "did you mean 30*time.Second?") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
