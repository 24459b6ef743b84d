package inspect_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestListOfEveryStrategy: each kind of lock is listed with its holder, first in its compact state, and then with a waiter.
func TestListOfEveryStrategy(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks, other := coretest.NewClient(t, server.Client()), coretest.NewClient(t, server.Client())
	modes := map[string]core.Mode{
		"Mutex": core.ModeMutex, "Fair": core.ModeFair, "Read": core.ModeRead, "Write": core.ModeWrite,
		"FairRead": core.ModeRead, "FairWrite": core.ModeWrite, "Semaphore": core.ModeSemaphore,
	}
	leases := make(map[string]*core.Lease)
	for name, strategy := range coretest.Strategies(locks) {
		leases[name] = coretest.MustLock(t, strategy(name), core.WithTTL(coretest.Long))
	}
	check := func(places int) {
		t.Helper()
		found := coretest.ListAll(t, other, "")
		if got, want := slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(modes)); !slices.Equal(got, want) {
			t.Fatalf("listed %q, want %q", got, want)
		}
		for name, lease := range leases {
			e := found[name]
			if e.Mode != modes[name] || e.Foreign || e.Holds != 1 || e.Places != places || len(e.Holders) != 1 {
				t.Errorf("%s: %+v", name, e)
				continue
			}
			h := e.Holders[0]
			if h.Owner != lease.Owner() || h.Token != lease.Token() || h.TTL <= 0 || h.TTL > coretest.Long || e.TTL < h.TTL-time.Second ||
				h.Granted.Sub(coretest.GrantedAt(lease)).Abs() > 10*time.Millisecond {
				t.Errorf("%s: %+v, of %s with token %d", name, h, lease.Owner(), lease.Token())
			}
		}
	}
	check(0)
	for name := range leases {
		_ = coretest.LockLater(other.Write(name)) // until the client is closed
		coretest.AwaitQueue(t, locks, name, 1)
	}
	check(1)
}

// TestListOfOtherKinds: a leader is listed with its value, Redisson's locks as foreign, and other hashes not at all.
func TestListOfOtherKinds(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithPrefix(""), core.WithTTL(coretest.Long))
	lead := coretest.MustCampaign(t, locks.Election("leader", core.WithValue("10.0.0.7:8080")))
	const owner = "5f0b6d4e-9d3a-4a2e-8a5e-2f6f0c9b1a77:42"
	rdb.HSet(ctx, "rlock", owner, 2)
	rdb.PExpire(ctx, "rlock", coretest.Long)
	rdb.HSet(ctx, "rreadwrite", "mode", "read", owner, 1)
	rdb.PExpire(ctx, "rreadwrite", coretest.Long)
	rdb.HSet(ctx, "user:1", "name", "Ada", "mode", "dark")
	rdb.HSet(ctx, "user:2", "visits", 7)
	rdb.HSet(ctx, "user:3", "mode", "3", "name", "Ada") // no token
	rdb.Set(ctx, "text", "text", 0)
	if err := coretest.MustBegin(t, locks.Once("record")).Complete(ctx, nil); err != nil {
		t.Fatal(err)
	}
	page, err := coretest.LockPage(ctx, locks, "", "", 0)
	if err != nil || page.Skipped != 3 || page.Next != "" || len(page.Locks) != 3 {
		t.Fatalf("%+v, %v", page, err)
	}
	leader, foreign, shared := page.Locks[0], page.Locks[1], page.Locks[2]
	if leader.Mode != core.ModeElection || leader.Name != "leader" || leader.Value != "10.0.0.7:8080" ||
		len(leader.Holders) != 1 || leader.Holders[0].Token != lead.Term() {
		t.Errorf("leader: %+v", leader)
	}
	if foreign.Name != "rlock" || !foreign.Foreign || foreign.Mode != core.ModeMutex || foreign.Holds != 1 ||
		foreign.TTL <= 0 || len(foreign.Holders) != 1 || foreign.Holders[0].Owner != owner || foreign.Holders[0].Holds != 2 ||
		foreign.Holders[0].Token != 0 || !foreign.Holders[0].Granted.IsZero() {
		t.Errorf("RLock: %+v", foreign)
	}
	if shared.Name != "rreadwrite" || !shared.Foreign || shared.Mode != core.ModeRead {
		t.Errorf("read lock of Redisson: %+v", shared)
	}
	lead.Context()
	rdb.HSet(ctx, "leader", "leader_value", "1 1 of an earlier grant")
	if e := coretest.ListAll(t, locks, "leader")["leader"]; e.Mode != core.ModeFair || e.Value != "" {
		t.Errorf("with the value of an earlier grant: %+v", e)
	}
}

// TestListOfPrefix: the prefix is text, whatever characters it has, and braces are no obstacle.
func TestListOfPrefix(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	for _, client := range []string{"lock:", "", "{shop}:", "a*b?:"} {
		locks := coretest.NewClient(t, rdb, core.WithPrefix(client), core.WithTTL(coretest.Long))
		names := []string{"p:1", "p:{a}", "p*:1", "p?:1", "p[a]:1", `p\:1`, "{p}", "{p}:1", "p:\n\xff", "p"}
		var leases []*core.Lease
		for i, name := range names {
			leases = append(leases, coretest.MustLock(t, locks.Mutex(name)))
			if err := coretest.MustBegin(t, locks.Once(name, core.WithNote(name))).Complete(context.Background(), make([]byte, i)); err != nil {
				t.Fatal(err)
			}
		}
		for prefix, want := range map[string]int{"": 10, "p": 8, "p:": 3, "p*": 1, "p?": 1, "p[": 1, "p[a]": 1, `p\`: 1, "{p": 2, "{p}:": 1, "p:{": 1, "q": 0} {
			found := coretest.ListAll(t, locks, prefix)
			if len(found) != want {
				t.Errorf("client %q, prefix %q: %q", client, prefix, slices.Sorted(maps.Keys(found)))
			}
			records := 0
			for r, err := range locks.Records(context.Background(), prefix) {
				if at := slices.Index(names, r.Key); err != nil || at < 0 || r.Size != at || r.Note != r.Key || r.Value != nil {
					t.Errorf("client %q, prefix %q: %+v, %v", client, prefix, r, err)
				}
				records++
			}
			if records != want {
				t.Errorf("client %q, prefix %q: %d records, want %d", client, prefix, records, want)
			}
		}
		for _, l := range leases {
			coretest.Unlock(t, l)
		}
		for _, name := range names {
			coretest.Forget(t, locks.Once(name))
		}
	}
}

// TestListRecords: a record is listed with all that Peek returns, but for its value and fingerprint.
func TestListRecords(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	started := func(name string) *core.Attempt {
		return coretest.MustBegin(t, locks.Once(name, core.WithNote("note of "+name), core.WithFingerprint([]byte("f"))))
	}
	started("running")
	for name, end := range map[string]func(*core.Attempt) error{
		"completed": func(a *core.Attempt) error { return a.Complete(ctx, []byte("value")) },
		"held":      func(a *core.Attempt) error { return a.Hold(ctx, "no answer") },
		"released":  func(a *core.Attempt) error { return a.Release(ctx) },
		"declared":  func(a *core.Attempt) error { return a.Declare(ctx, core.StateCompleted) },
	} {
		if err := end(started(name)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	page, err := coretest.RecordPage(ctx, locks, "", "", 0)
	if err != nil || page.Next != "" || len(page.Records) != 4 {
		t.Fatalf("%+v, %v", page, err)
	}
	for i, name := range []string{"completed", "declared", "held", "running"} {
		got, want := page.Records[i], coretest.MustPeek(t, locks.Once(name))
		if size := len(want.Value); got.Size != size || got.Retention < want.Retention || got.Lease < want.Lease {
			t.Errorf("%s: %+v, want a value of %d bytes, and %+v", name, got, size, want)
		}
		want.Value, want.Fingerprint, want.Retention, want.Lease = nil, nil, got.Retention, got.Lease
		want.ProofKey = "" // only Peek sets it
		if fmt.Sprintf("%+v", got.Record) != fmt.Sprintf("%+v", want) {
			t.Errorf("%s: listed as %+v, Peek returned %+v", name, got.Record, want)
		}
	}
}

// TestListOfInstances: a list has the instance of each holder, and none for an owner that WithOwner has named.
func TestListOfInstances(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := coretest.NewClient(t, server.Client())
	one, two := coretest.NewClient(t, server.Client(), core.WithInstance("web-1")), coretest.NewClient(t, server.Client(), core.WithInstance("web-2"))
	coretest.MustLock(t, one.Read("shared"))
	coretest.MustLock(t, two.Read("shared"))
	coretest.MustLock(t, two.Mutex("named"), core.WithOwner("operator"))
	testkit.Eventually(t, coretest.Within, "both instances", func() bool {
		found := make(map[string]bool)
		for _, h := range coretest.ListAll(t, locks, "")["shared"].Holders {
			found[h.Instance] = true
		}
		return found["web-1"] && found["web-2"]
	})
	if h := coretest.ListAll(t, locks, "")["named"].Holders; len(h) != 1 || h[0].Instance != "" {
		t.Errorf("holders %+v", h)
	}
}
