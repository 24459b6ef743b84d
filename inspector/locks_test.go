package inspector_test

import (
	"context"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// lockData is what the tests read of a lock's page.
type lockData struct {
	Name    string
	Mode    core.Mode
	Holders []struct {
		Owner, Instance string
		Token           int64
		Granted         time.Time
		Permits, Limit  int
		TTL             struct {
			Left int64 `json:"left_ms"`
		}
	}
	Queue           []struct{ Owner, Instance string }
	Places, Waiters int
	Value           string
}

// TestEveryKind: each kind of lock is in the list and on its page, with its holder, its process and what waits for it.
func TestEveryKind(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	holders := newClient(t, server.Client(), core.WithInstance("web-1:4711"))
	waiters := newClient(t, server.Client(), core.WithInstance("web-2:12"))
	s := newSite(t, newClient(t, server.Client()))
	kinds := map[core.Mode]func(c *core.Client) *core.Lock{
		core.ModeMutex:     func(c *core.Client) *core.Lock { return c.Mutex("mutex") },
		core.ModeFair:      func(c *core.Client) *core.Lock { return c.Fair("fair") },
		core.ModeRead:      func(c *core.Client) *core.Lock { return c.FairRead("read") },
		core.ModeWrite:     func(c *core.Client) *core.Lock { return c.FairWrite("write") },
		core.ModeSemaphore: func(c *core.Client) *core.Lock { return c.Semaphore("semaphore", 1) },
	}
	tokens := make(map[core.Mode]int64)
	for mode, of := range kinds {
		tokens[mode] = mustLock(t, of(holders)).Token()
		if mode == core.ModeRead {
			wait(t, waiters.FairWrite("read"))
			continue
		}
		wait(t, of(waiters))
	}
	for mode := range kinds {
		var lock lockData
		testkit.Eventually(t, patience, "a waiter of "+string(mode), func() bool {
			lock = lockData{}
			s.data("lock?name="+string(mode), &lock)
			return lock.Places+lock.Waiters > 0 && lock.Holders[0].Instance != "" &&
				(len(lock.Queue) == 0 || lock.Queue[0].Instance != "")
		})
		held := lock.Holders[0]
		if lock.Mode != mode || held.Token != tokens[mode] || held.Instance != "web-1:4711" || held.TTL.Left <= 0 || held.Granted.IsZero() {
			t.Errorf("%s: %+v", mode, lock)
		}
		if mode != core.ModeMutex && (len(lock.Queue) != 1 || lock.Queue[0].Instance != "web-2:12") {
			t.Errorf("%s: queue %+v", mode, lock.Queue)
		}
		contains(t, s.get(http.StatusOK, "lock?name="+string(mode)), "<h1>", "web-1:4711", `<progress max="30000"`)
	}
	list := s.get(http.StatusOK, "")
	for mode := range kinds {
		contains(t, list, `href="./lock?name=`+string(mode)+`"`, `class="badge `+string(mode)+`"`)
	}
	contains(t, list, "web-1:4711", "<b>1</b> queued", "1 listening")
}

// TestLeader: a page shows what the leader of an election proclaims.
func TestLeader(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := newClient(t, server.Client())
	s := newSite(t, locks)
	lead, err := locks.Election("scheduler", core.WithValue("10.0.0.7:8080")).Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	contains(t, s.get(http.StatusOK, ""), "10.0.0.7:8080", ">election<")
	contains(t, s.get(http.StatusOK, "lock?name=scheduler"), "10.0.0.7:8080")
	if err := lead.Resign(context.Background()); err != nil {
		t.Fatal(err)
	}
	contains(t, s.get(http.StatusOK, "lock?name=scheduler"), "Nothing holds this lock")
}

// TestPrefixAndParts: a list is limited to a prefix, and read part by part until its end.
func TestPrefixAndParts(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	rdb := server.Client()
	seedLocks(t, rdb, "order:", 300)
	seedLocks(t, rdb, "cart:", 5)
	s := newSite(t, newClient(t, server.Client()))
	type part struct {
		Next  string
		Locks []struct{ Name string }
	}
	seen := make(map[string]bool)
	for cursor, parts := "", 0; parts == 0 || cursor != ""; parts++ {
		var p part
		s.data("?prefix=order:&cursor="+url.QueryEscape(cursor), &p)
		for _, l := range p.Locks {
			seen[l.Name] = true
		}
		if cursor = p.Next; len(p.Locks) > 200 {
			t.Errorf("a part has %d locks", len(p.Locks))
		}
	}
	if len(seen) != 300 || seen["cart:1"] {
		t.Errorf("%d locks were listed", len(seen))
	}
	contains(t, s.get(http.StatusOK, "?prefix=order:"), "Next part", `value="order:"`)
	contains(t, s.get(http.StatusOK, "?prefix=nothing"), "No lock that begins with")
	s.get(http.StatusBadRequest, "?cursor=none")
}
