package core_test

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestProclamationArrivesLate: the value of the later call stays.
func TestProclamationArrivesLate(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	e := coretest.NewClient(t, testkit.Start(t).Client()).Election("name", core.WithValue("first"))
	lead := coretest.MustCampaign(t, e)
	coretest.Proclaim(t, lead, "second")
	coretest.Proclaim(t, lead, "third")
	for i, value := range []string{"first", "second"} {
		if held, err := core.SendProclamation(ctx, lead, int64(i+1), value); err != nil || !held {
			t.Errorf("number %d: %t, %v", i+1, held, err)
		}
	}
	if l := coretest.MustLeader(t, e); l.Value != "third" {
		t.Errorf("the value is %q", l.Value)
	}
	coretest.Resign(t, lead)
}
