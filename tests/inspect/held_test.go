package inspect_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestHeldOfEveryStrategy: a client knows its leases by itself, until they end.
func TestHeldOfEveryStrategy(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long))
	if held := locks.Held(); len(held) != 0 {
		t.Errorf("before: %+v", held)
	}
	modes := map[string]core.Mode{
		"Mutex": core.ModeMutex, "Fair": core.ModeFair, "Read": core.ModeRead, "Write": core.ModeWrite,
		"FairRead": core.ModeRead, "FairWrite": core.ModeWrite, "Semaphore": core.ModeSemaphore,
	}
	before := time.Now()
	leases := make(map[string]*core.Lease)
	for name, strategy := range coretest.Strategies(locks) {
		leases[name] = coretest.MustLock(t, strategy(name))
	}
	held := locks.Held()
	if len(held) != len(leases) {
		t.Fatalf("%+v", held)
	}
	for i, h := range held {
		l := leases[h.Name]
		if i > 0 && held[i-1].Name >= h.Name {
			t.Errorf("%q comes after %q", h.Name, held[i-1].Name)
		}
		permits := map[bool]int{true: 1}[h.Mode == core.ModeSemaphore]
		if h.Mode != modes[h.Name] || h.Owner != l.Owner() || h.Token != l.Token() || h.TTL != coretest.Long ||
			!h.Renewed || h.Permits != permits || h.Since.Before(before.Add(-time.Second)) || h.Since.After(time.Now().Add(time.Second)) {
			t.Errorf("%+v", h)
		}
		if off := h.ValidUntil.Sub(l.ValidUntil()).Abs(); off > time.Second {
			t.Errorf("%s: valid until %v, which is %v off", h.Name, h.ValidUntil, off)
		}
	}
	for _, l := range leases {
		coretest.Unlock(t, l)
	}
	if held := locks.Held(); len(held) != 0 {
		t.Errorf("after: %+v", held)
	}
}

// TestHeldOfOtherKinds: attempts, leaders, members of a Multi, re-entries and fixed leases are marked as what they are.
func TestHeldOfOtherKinds(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long))
	attempt := coretest.MustBegin(t, locks.Once("a once"))
	lead := coretest.MustCampaign(t, locks.Election("b leader"))
	fixed := coretest.MustLock(t, locks.Mutex("c fixed"), core.WithFixedTTL(coretest.Long/2), core.WithMaxHold(coretest.Long/4))
	joint := coretest.MustLock(t, core.Multi(locks.Mutex("d first"), locks.Fair("e second")))
	again := coretest.MustLockWith(t, joint.Context(), locks.Mutex("d first"))
	held := locks.Held()
	var got []string
	for _, h := range held {
		got = append(got, h.Name+" "+string(h.Mode))
	}
	want := []string{"a once once", "b leader election", "c fixed mutex", "d first mutex", "d first mutex", "e second fair"}
	if len(got) != len(want) {
		t.Fatalf("%q, want %q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%q, want %q", got[i], want[i])
		}
	}
	if h := held[0]; h.Token != attempt.Token() {
		t.Errorf("attempt: %+v", h)
	}
	if h := held[1]; h.Token != lead.Term() {
		t.Errorf("leader: %+v", h)
	}
	if h := held[2]; h.Renewed || h.TTL != coretest.Long/2 || h.ValidUntil.Sub(fixed.ValidUntil()).Abs() > time.Second {
		t.Errorf("fixed: %+v", h)
	}
	if held[3].Owner != held[4].Owner || held[3].Since.After(held[4].Since) {
		t.Errorf("re-entry: %+v, %+v", held[3], held[4])
	}
	coretest.Unlock(t, again)
	if err := locks.Close(); err != nil || len(locks.Held()) != 0 {
		t.Errorf("after Close: %+v, %v", locks.Held(), err)
	}
	coretest.WantErr(t, context.Cause(attempt.Context()), core.ErrClosed)
}

// awaitWaiting returns the calls that wait, once there are that many and all know their position.
func awaitWaiting(t testing.TB, held interface{ Waiting() []core.Waiting }, n int) (all []core.Waiting) {
	t.Helper()
	testkit.Eventually(t, coretest.Within, "the calls to wait", func() bool {
		all = held.Waiting()
		known := 0
		for _, w := range all {
			if w.Position > 0 {
				known++
			}
		}
		return len(all) == n && known == n
	})
	return all
}

// TestWaitingCalls: calls that wait are listed with their place, in the list of the process or in the queue in Redis.
func TestWaitingCalls(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks, other := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long)), coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	held := coretest.MustLock(t, other.Mutex("a"))
	queued := coretest.MustLock(t, other.Write("b"))
	attempt := coretest.MustBegin(t, other.Once("c"))
	lead := coretest.MustCampaign(t, other.Election("d"))
	var done []<-chan error
	for range 3 {
		done = append(done, coretest.LockLater(locks.Mutex("a")))
	}
	done = append(done, coretest.LockLater(locks.Read("b")))
	coretest.AwaitQueue(t, locks, "b", 1)
	done = append(done, coretest.LockLater(locks.Fair("b")))
	coretest.AwaitQueue(t, locks, "b", 2)
	begun := make(chan error, 1)
	go func() {
		_, err := locks.Once("c", core.WithWait(coretest.Within)).Begin(context.Background())
		begun <- err
	}()
	candidate := coretest.CampaignLater(t, locks.Election("d"))
	all := awaitWaiting(t, locks, 7)
	want := []core.Waiting{
		{Name: "a", Mode: core.ModeMutex, Position: 1},
		{Name: "a", Mode: core.ModeMutex, Position: 2},
		{Name: "a", Mode: core.ModeMutex, Position: 3},
		{Name: "b", Mode: core.ModeRead, Position: 1, InRedis: true},
		{Name: "b", Mode: core.ModeFair, Position: 2, InRedis: true},
		{Name: "c", Mode: core.ModeOnce, Position: 1},
		{Name: "d", Mode: core.ModeElection, Position: 1, InRedis: true},
	}
	for i, w := range all {
		if w.Owner == "" || w.Since.IsZero() || time.Since(w.Since) > coretest.Within {
			t.Errorf("%+v", w)
		}
		if w.Owner, w.Since = "", (time.Time{}); w != want[i] {
			t.Errorf("%+v, want %+v", w, want[i])
		}
	}
	coretest.Unlock(t, held)
	coretest.Unlock(t, queued)
	if err := attempt.Complete(context.Background(), nil); err != nil {
		t.Error(err)
	}
	coretest.Resign(t, lead)
	for _, d := range done {
		if err := coretest.Receive(t, d); err != nil {
			t.Error(err)
		}
	}
	coretest.WantErr(t, coretest.Receive(t, begun), core.ErrCompleted)
	coretest.Resign(t, coretest.AwaitLead(t, candidate))
	awaitWaiting(t, locks, 0)
}

// TestGrantedAtOnceIsNoWait: a call that finds the lock free, or does not wait, is never among those that wait.
func TestGrantedAtOnceIsNoWait(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	waited := make(chan core.Wait, 100)
	locks := coretest.NewClient(t, rdb, core.WithHooks(core.Hooks{
		Wait: func(_ context.Context, w core.Wait) { waited <- w },
	}))
	for name, strategy := range coretest.Strategies(locks) {
		coretest.Unlock(t, coretest.MustLock(t, strategy(name)))
		if len(waited) > 0 || len(locks.Waiting()) > 0 {
			t.Errorf("%s: a free lock was waited for", name)
		}
	}
	coretest.MustLock(t, coretest.NewClient(t, rdb).Mutex("held"))
	_, err := locks.Mutex("held").TryLock(context.Background())
	coretest.WantErr(t, err, core.ErrNotAcquired)
	if len(waited) > 0 || len(locks.Waiting()) > 0 {
		t.Error("TryLock has waited")
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-waited
		cancel()
	}()
	_, err = locks.Mutex("held").Lock(ctx)
	coretest.WantErr(t, err, core.ErrNotAcquired)
	if all := locks.Waiting(); len(all) > 0 {
		t.Errorf("a call that has returned waits: %+v", all)
	}
}

// TestHeldOfRedlock: a Redlock knows its leases and its waiting calls too.
func TestHeldOfRedlock(t *testing.T) {
	t.Parallel()
	three := coretest.StartMasters(t, 3)
	r := three.Redlock(t, core.WithTTL(coretest.Long), core.WithNodeTimeout(time.Second))
	lease := coretest.MustLock(t, r.Mutex("name"))
	waiting := coretest.LockLater(r.Mutex("name"))
	if w := awaitWaiting(t, r, 1)[0]; w.Name != "name" || w.Mode != core.ModeRedlock || w.Position != 1 || w.InRedis {
		t.Errorf("%+v", w)
	}
	held := r.Held()
	if len(held) != 1 || held[0].Name != "name" || held[0].Token != lease.Token() || held[0].Mode != core.ModeRedlock {
		t.Errorf("%+v", held)
	}
	coretest.Unlock(t, lease)
	if err := coretest.Receive(t, waiting); err != nil {
		t.Error(err)
	}
}
