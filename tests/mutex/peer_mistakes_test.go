package mutex_test

import (
	"context"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// The tests in this file are holes of other lock libraries, each named after what went wrong there. More of them
// are part of the conformance suite: late loss signal (FrozenServersLoseTheLease), clean-up with a dead context
// (CancelledInFlight, UnlockWithDeadContextWorks), state in shared options (OptionsMayBeUsedAgain), unlock that
// ends the renewal of the outer hold (InnerUnlockKeepsRenewing), re-entry on the strength of a remembered count
// (ReentryAfterLossIsRefused), handles racing between goroutines (LeaseMayBeSharedByTasks), scripts that are never
// loaded again (ScriptsForgotten).

// TestPeerClientClockReachesRedis: expiry computed from the client's wall clock. No number near the present
// time may be sent.
func TestPeerClientClockReachesRedis(t *testing.T) {
	t.Parallel()
	relay := testkit.Start(t).Relay()
	var mu sync.Mutex
	var sent strings.Builder
	relay.OnRequest(func(chunk []byte) {
		mu.Lock()
		defer mu.Unlock()
		sent.Write(chunk)
	})
	locks := coretest.NewClient(t, relay.Client())
	lease := coretest.MustLock(t, locks.Mutex("name"), core.WithMinHold(time.Second))
	if err := lease.Extend(context.Background(), coretest.Long); err != nil {
		t.Errorf("extend: %v", err)
	}
	coretest.Unlock(t, lease)

	now := time.Now()
	mu.Lock()
	defer mu.Unlock()
	numbers := regexp.MustCompile(`\b\d{9,19}\b`).FindAllString(sent.String(), -1)
	for _, number := range numbers {
		n, _ := strconv.ParseInt(number, 10, 64)
		for _, unit := range []int64{now.Unix(), now.UnixMilli(), now.UnixMicro(), now.UnixNano()} {
			if n > unit-unit/1000 && n < unit+unit/1000 {
				t.Errorf("%s looks like the client's time", number)
			}
		}
	}
	if !strings.Contains(sent.String(), "lock:name") {
		t.Error("nothing was recorded")
	}
}

// TestPeerWaitersNeedAPush: waiters that hear of a release only by message. Here none is ever sent, because
// the user that releases may not publish.
func TestPeerWaitersNeedAPush(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	mute := coretest.Restricted(t, server, "+@all", "-publish")
	holder, waiter := coretest.NewClient(t, mute), coretest.NewClient(t, server.Client())
	lease := coretest.MustLock(t, holder.Mutex("name"), core.WithTTL(coretest.Long))
	waiting := coretest.LockLater(waiter.Mutex("name"))
	coretest.AwaitListeners(t, waiter, "name", 1)
	coretest.Unlock(t, lease)
	if err := coretest.Receive(t, waiting); err != nil {
		t.Errorf("waiter: %v", err)
	}
}

// TestPeerLeaseOffersLocking: a lease that embeds its client and can be locked again.
func TestPeerLeaseOffersLocking(t *testing.T) {
	t.Parallel()
	var methods []string
	lease := reflect.TypeFor[*core.Lease]()
	for i := range lease.NumMethod() {
		methods = append(methods, lease.Method(i).Name)
	}
	want := []string{"Abandon", "Context", "Done", "Extend", "Name", "Owner", "Slot", "Token", "Unlock", "ValidUntil"}
	if !slices.Equal(methods, want) {
		t.Errorf("methods of Lease: %v, want %v", methods, want)
	}
	if fields := reflect.VisibleFields(reflect.TypeFor[core.Lease]()); slices.ContainsFunc(fields,
		func(f reflect.StructField) bool { return f.IsExported() && len(f.Index) == 1 }) {
		t.Error("Lease has exported fields")
	}
}

// TestPeerRenewalsShareAMap: two handles on one name in one process, renewed by a map keyed by the name, so that
// one overwrites the other.
func TestPeerRenewalsShareAMap(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	a := coretest.NewClient(t, server.Client(), core.WithTTL(3*time.Second))
	b := coretest.NewClient(t, server.Client(), core.WithTTL(3*time.Second), core.WithPrefix("other:"))
	first := coretest.MustLock(t, a.Mutex("name"))
	second := coretest.MustLock(t, b.Mutex("name"))
	third := coretest.MustLockWith(t, first.Context(), a.Mutex("name"))
	coretest.AwaitRenewed(t, []*core.Lease{first, second, third}, 5*time.Second)
	for _, l := range []*core.Lease{third, second, first} {
		coretest.Unlock(t, l)
	}
}

// TestPeerTokenOfRetriedAcquireIsZero: the repeated acquire takes the re-entry branch, which has no token; and
// names with braces are refused, so that nothing can share a slot.
func TestPeerTokenOfRetriedAcquireIsZero(t *testing.T) {
	t.Parallel()
	relay := testkit.Start(t).Relay()
	locks := coretest.NewClient(t, relay.Client())
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("{user:1}:warm")))
	relay.LoseReplies("{user:1}:cart", 1, testkit.Closed)
	lease := coretest.MustLock(t, locks.Mutex("{user:1}:cart"))
	if relay.LostReplies() == 0 {
		t.Error("no reply was lost")
	}
	if lease.Token() <= 0 {
		t.Errorf("token %d", lease.Token())
	}
	if info, err := locks.Inspect(context.Background(), "{user:1}:cart"); err != nil ||
		len(info.Holders) != 1 || info.Holders[0].Holds != 1 || info.Holders[0].Token != lease.Token() {
		t.Errorf("Inspect = %+v, %v", info, err)
	}
	coretest.Unlock(t, lease)
}

// TestPeerEachWaiterSubscribes: a connection for each waiting call, and all of them polling.
func TestPeerEachWaiterSubscribes(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	holder := coretest.MustLock(t, coretest.NewClient(t, server.Client()).Mutex("name"), core.WithTTL(coretest.Long))
	locks := coretest.NewClient(t, server.Client())
	const waiters = 50
	var waiting []<-chan error
	for range waiters {
		waiting = append(waiting, coretest.LockLater(locks.Mutex("name")))
	}
	coretest.AwaitListeners(t, locks, "name", 1)
	subscribed := strings.Count(coretest.ClientList(t, server), "sub=1 ")
	if subscribed != 1 {
		t.Errorf("%d subscribed connections, want 1", subscribed)
	}
	if asked := server.CommandStats()["evalsha"].Calls; asked > waiters/2 {
		t.Errorf("%d requests while %d calls of one process wait", asked, waiters)
	}
	coretest.Unlock(t, holder)
	for _, done := range waiting {
		if err := coretest.Receive(t, done); err != nil {
			t.Errorf("waiter: %v", err)
		}
	}
}

// TestPeerStaleUnlockFreesASuccessor: a late duplicate of an unlock, delivered when the same client holds the
// lock anew.
func TestPeerStaleUnlockFreesASuccessor(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	relay := server.Relay()
	locks := coretest.NewClient(t, relay.Client())
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("name")))
	lease := coretest.MustLock(t, locks.Mutex("name"), core.WithTTL(coretest.Long))
	relay.Hold(testkit.ToServer) // the release stays on its way
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := lease.Unlock(ctx); err == nil {
		t.Error("an unconfirmed release was reported as done")
	}
	if forced, err := coretest.NewClient(t, server.Client()).ForceUnlock(context.Background(), "name"); !forced || err != nil {
		t.Errorf("ForceUnlock = %v, %v", forced, err)
	}
	rdb := server.Client()
	next := coretest.MustLock(t, coretest.NewClient(t, rdb).Mutex("name"), core.WithTTL(coretest.Long))
	before := server.CommandStats()["evalsha"].Calls
	relay.Deliver()
	testkit.Eventually(t, coretest.Within, "the late release to be executed", func() bool {
		return server.CommandStats()["evalsha"].Calls > before
	})
	if _, err := locks.Mutex("name").TryLock(context.Background()); err == nil {
		t.Error("the late release freed the lock of its successor")
	}
	coretest.Unlock(t, next)
}
