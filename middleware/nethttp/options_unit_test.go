package httplock

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
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
	for name, option := range map[string]Option{
		"WithWait": core.WithWait(30), "WithAskTimeout": guards.WithAskTimeout(30),
		"WithFinishTimeout": guards.WithFinishTimeout(30), "WithRetention": core.WithRetention(30),
		"WithTTL": core.WithTTL(30),
	} {
		_, err := NewOnce(locks, Unscoped(), option)
		if err == nil || !strings.Contains(err.Error(), time.Duration(30).String()) || !strings.Contains(err.Error(), "did you mean 30*time.Second?") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
