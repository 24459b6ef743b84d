package xrate_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/lab/bench/xrate"
	"github.com/holdfast-go/holdfast/lab/permits"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestPlays: the package is used as it should be, since it loses no permit for good.
func TestPlays(t *testing.T) {
	t.Parallel()
	for _, p := range permits.Plays() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			tasks, err := xrate.StartTasks(testkit.Start(t, testkit.TCP()).Addr(), 64)
			if err != nil {
				t.Fatal(err)
			}
			defer tasks.Close()
			o, err := p.Run(t.Context(), t, xrate.Contestant("x/rate", tasks, xrate.ShortPause))
			if err != nil || o.Lost != 0 {
				t.Errorf("%+v, %v", o, err)
			}
			h, err := p.Run(t.Context(), t, permits.Holdfast())
			t.Logf("x/rate: %v; holdfast: %v, %v", o, h, err)
		})
	}
}
