package core_test

import (
	"context"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestCloseWithUnconfirmedEndsAndLocks: the error tells of both.
func TestCloseWithUnconfirmedEndsAndLocks(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	relay := server.Relay()
	locks, _, _ := coretest.Unconfirmed(t, server, relay)
	relay.Heal()
	testkit.Eventually(t, coretest.Within, "all ends to be answered", func() bool { return core.UnconfirmedEnds(locks) == 0 })
	coretest.MustLock(t, locks.Mutex("name"))
	a := coretest.MustBegin(t, locks.Once("last"))
	relay.Refuse(true)
	relay.Reset()
	coretest.WantUnconfirmed(t, func(ctx context.Context) error { return a.Complete(ctx, nil) })
	err := locks.Close()
	for _, part := range []string{"completions not confirmed (1)", "release of lock \"name\" not confirmed"} {
		if coretest.WantErr(t, err, core.ErrUnavailable); !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not say %q", err, part)
		}
	}
}
