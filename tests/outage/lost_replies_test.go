package outage_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestLostRepliesWithDefaults loses the replies to acquire, renew and release on a client with go-redis's default
// options and several warm connections, where a plain script would be executed up to four times.
func TestLostRepliesWithDefaults(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]testkit.LossMode{"Silent": testkit.Silent, "Closed": testkit.Closed} {
		for step, test := range map[string]func(*testing.T, *loser){
			"Acquire": loseAcquire, "Reentry": loseReentry, "Renew": loseRenew, "Release": loseRelease,
		} {
			t.Run(step+name, func(t *testing.T) {
				t.Parallel()
				l := newLoser(t, how)
				test(t, l)
				if l.relay.LostReplies() == 0 {
					t.Error("no reply was lost")
				}
				if n := l.server.Client().Exists(context.Background(), "lock:name").Val(); n != 0 {
					t.Error("the lock is still there")
				}
			})
		}
	}
}

// loser is a client whose replies get lost.
type loser struct {
	server  *testkit.Server
	relay   *testkit.Relay
	locks   *core.Client
	renewed chan error
	how     testkit.LossMode
}

func newLoser(t *testing.T, how testkit.LossMode) *loser {
	t.Helper()
	l := &loser{server: testkit.Start(t), renewed: make(chan error, 100), how: how}
	l.relay = l.server.Relay()
	rdb := l.relay.Client()
	coretest.WarmPool(t, rdb)
	l.locks = coretest.NewClient(t, rdb, core.WithTTL(6*time.Second), core.WithHooks(core.Hooks{
		Renewed: func(_ context.Context, r core.Renewed) { l.renewed <- r.Err },
	}))
	known := coretest.MustLock(t, l.locks.Mutex("known")) // the scripts
	if err := known.Extend(context.Background(), coretest.Long); err != nil {
		t.Errorf("extend: %v", err)
	}
	coretest.Unlock(t, known)
	return l
}

func (l *loser) lose() { l.relay.LoseReplies("lock:name", 1, l.how) }

func loseAcquire(t *testing.T, l *loser) {
	l.lose()
	lease := coretest.MustLock(t, l.locks.Mutex("name"))
	wantHolds(t, l.locks, lease.Owner(), 1)
	coretest.Unlock(t, lease)
}

func loseReentry(t *testing.T, l *loser) {
	outer := coretest.MustLock(t, l.locks.Mutex("name"))
	l.lose()
	inner := coretest.MustLockWith(t, outer.Context(), l.locks.Mutex("name"))
	if inner.Token() != outer.Token() {
		t.Errorf("inner token %d, outer %d", inner.Token(), outer.Token())
	}
	wantHolds(t, l.locks, outer.Owner(), 2)
	coretest.Unlock(t, inner)
	coretest.Unlock(t, outer)
}

func loseRenew(t *testing.T, l *loser) {
	lease := coretest.MustLock(t, l.locks.Mutex("name"))
	l.lose()
	for renewals := 0; renewals < 2; {
		select {
		case err := <-l.renewed:
			if err == nil {
				renewals++
			}
		case <-lease.Done():
			t.Fatalf("the lease ended: %v", context.Cause(lease.Context()))
		case <-time.After(coretest.Within):
			t.Fatal("no renewal")
		}
	}
	wantHolds(t, l.locks, lease.Owner(), 1)
	coretest.Unlock(t, lease)
}

func loseRelease(t *testing.T, l *loser) {
	outer := coretest.MustLock(t, l.locks.Mutex("name"))
	inner := coretest.MustLockWith(t, outer.Context(), l.locks.Mutex("name"))
	for left, lease := range []*core.Lease{outer, inner} {
		l.lose()
		coretest.Unlock(t, lease)
		wantHolds(t, l.locks, outer.Owner(), 1-left)
	}
}

func wantHolds(t *testing.T, locks *core.Client, owner string, holds int) {
	t.Helper()
	info, err := locks.Inspect(context.Background(), "name")
	switch {
	case err != nil:
		t.Errorf("inspect: %v", err)
	case holds == 0 && len(info.Holders) != 0,
		holds > 0 && (len(info.Holders) != 1 || info.Holders[0].Owner != owner || info.Holders[0].Holds != holds):
		t.Errorf("holders %+v, want %d holds of %s", info.Holders, holds, owner)
	}
}
