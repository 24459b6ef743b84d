package topology_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/lab/faults/topology"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

func TestShiftMovesTheClockOfTheServer(t *testing.T) {
	d := topology.Start(t, topology.Clock, 1)
	for _, by := range []time.Duration{time.Minute, -time.Hour, 0} {
		if err := d.Shift.Set(by); err != nil {
			t.Fatal(err)
		}
		now, err := d.Admin(0).Time(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		if off := time.Until(now) - by; off.Abs() > 10*time.Second {
			t.Errorf("shifted by %v, the server's clock is off by %v", by, off)
		}
	}
}
