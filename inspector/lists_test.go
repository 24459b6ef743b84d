package inspector_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestSortLocks: a list says how many locks it has, and is sorted by what was chosen, also as data and as events.
func TestSortLocks(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks, waiter := newClient(t, server.Client()), newClient(t, server.Client())
	s := newSite(t, locks)
	for i, name := range []string{"c", "a", "b"} { // in the order of their age
		mustLock(t, locks.Fair(name), core.WithFixedTTL([]time.Duration{2, 3, 1}[i]*time.Hour))
		testkit.Eventually(t, patience, "the clock of Redis to go on", func() bool {
			now, err := server.Client().Time(t.Context()).Result()
			info, inspectErr := locks.Inspect(t.Context(), name)
			return err == nil && inspectErr == nil && now.Sub(info.Holders[0].Granted) > 2*time.Millisecond
		})
	}
	wait(t, waiter.Fair("b"))
	testkit.Eventually(t, patience, "a waiter", func() bool {
		info, err := locks.Inspect(t.Context(), "b")
		return err == nil && info.Places == 1
	})
	for sort, want := range map[string]string{"": "abc", "name": "abc", "since": "cab", "left": "bca", "waiting": "bac", "odd": "abc"} {
		var list struct {
			Sort  string
			Locks []struct{ Name string }
		}
		s.data("?sort="+sort, &list)
		got := ""
		for _, l := range list.Locks {
			got += l.Name
		}
		if got != want || list.Sort != sort && list.Sort != "name" {
			t.Errorf("sorted by %q: %s by %q, want %s", sort, got, list.Sort, want)
		}
		body := s.get(http.StatusOK, "?sort="+sort)
		contains(t, body, "3 locks in all", fmt.Sprintf(`<option value=%q selected>`, list.Sort))
		inOrder(t, body, want)
		inOrder(t, awaitEvent(t, s.watch("?sort="+sort), "live: "), want)
	}
}

// inOrder fails the test if the locks of a page are not in an order.
func inOrder(t *testing.T, body, want string) {
	t.Helper()
	var at []int
	for _, name := range want {
		at = append(at, strings.Index(body, "lock?name="+string(name)))
	}
	if !slices.IsSorted(at) {
		t.Errorf("the locks are at %v, want the order %s", at, want)
	}
}

// TestSortOthers: records, jobs and what this process holds can be sorted too.
func TestSortOthers(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	s := newSite(t, locks)
	held(t, locks, "a", 2*time.Hour)
	held(t, locks, "b", time.Hour)
	mustLock(t, locks.Mutex("z"))
	mustLock(t, locks.Mutex("y"))
	for path, want := range map[string][]string{
		"records":            {"2 records in all", "record?name=a", "record?name=b"},
		"records?sort=kept":  {"record?name=b", "record?name=a"},
		"process":            {"lock?name=y", "lock?name=z"},
		"process?sort=since": {"lock?name=z", "lock?name=y"},
		"cron?sort=last":     {"No replica"},
	} {
		body := s.get(http.StatusOK, path)
		for _, text := range want {
			_, rest, found := strings.Cut(body, text)
			if !found {
				t.Errorf("%s: no %q in its place:\n%s", path, text, body)
			}
			body = rest
		}
	}
}

// TestPartsOfAList keep what was chosen, say that they are parts, and may be larger.
func TestPartsOfAList(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	seedLocks(t, server.Client(), "order:", 700)
	s := newSite(t, newClient(t, server.Client()))
	body := s.get(http.StatusOK, "?prefix=order&sort=left&limit=200")
	contains(t, body, "in this part", "there are more", "limit=200", "sort=left", "prefix=order", `<option value="200" selected>`)
	contains(t, s.get(http.StatusOK, "?limit=1000"), "700 locks in all")
	var list struct {
		Limit int
		Locks []struct{}
	}
	if s.data("?limit=1000000", &list); list.Limit != 50 || len(list.Locks) > 200 {
		t.Errorf("%d locks in a part of %d", len(list.Locks), list.Limit)
	}
}
