package core_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"regexp"
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

// TestCloseWithRunningAttempts: the log names the attempts that nobody will end, not those that have ended, and no locks.
func TestCloseWithRunningAttempts(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	for _, running := range []int{0, 1, 12} {
		log := new(coretest.Record)
		locks, err := core.New(rdb, core.WithPrefix(fmt.Sprintf("%d:", running)), core.WithLogger(coretest.TextLogger(log)))
		if err != nil {
			t.Fatal(err)
		}
		coretest.MustLock(t, locks.Mutex("lock"))
		if err := coretest.MustBegin(t, locks.Once("done")).Complete(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		for i := range running {
			coretest.MustBegin(t, locks.Once(fmt.Sprint(i)))
		}
		if err := locks.Close(); err != nil {
			t.Fatal(err)
		}
		line := regexp.MustCompile(`level=WARN msg="holdfast: closed while attempts were running" attempts=(\d+) locks="?\[([0-9a-f ]+)\]`).FindStringSubmatch(log.String())
		switch {
		case running == 0:
			if line != nil {
				t.Errorf("%s", log)
			}
		case line == nil || line[1] != fmt.Sprint(running) || len(strings.Fields(line[2])) != min(running, 10):
			t.Errorf("%d are running: %s", running, log)
		case running == 1 && line[2] != fmt.Sprintf("%.4x", sha256.Sum256([]byte("holdfast:once:{1:0}"))):
			t.Errorf("digest %s", line[2])
		}
	}
}
