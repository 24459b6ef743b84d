package inspector_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// TestRedisIsAway: pages say so with 503, in HTML and JSON, and what this process holds is still shown.
func TestRedisIsAway(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	locks := newClient(t, server.Client())
	s := newSite(t, locks)
	mustLock(t, locks.Mutex("order:42"))
	server.Kill()
	for _, path := range []string{"", "lock?name=order:42", "records", "record?name=x", "cron", "find?q=x"} {
		contains(t, s.get(http.StatusServiceUnavailable, path), "Redis does not answer", "This process")
	}
	resp, body := s.do(http.MethodGet, "", nil, "Accept", "application/json")
	if resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, `"title": "Redis does not answer"`) {
		t.Errorf("status %d: %s", resp.StatusCode, body)
	}
	contains(t, s.get(http.StatusOK, "process"), "order:42")
}

// TestRedisIsFrozen: a Redis that does not answer keeps no request for longer than the limit of a page.
func TestRedisIsFrozen(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := newSite(t, newClient(t, server.Client()))
	s.get(http.StatusOK, "")
	server.Pause()
	contains(t, s.get(http.StatusServiceUnavailable, ""), "Redis does not answer")
	server.Resume()
}

// TestWithoutScan: a user without the right to SCAN gets a page that names it, and looks up a lock by its name.
func TestWithoutScan(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	err := server.Client().Do(context.Background(), "ACL", "SETUSER", "locker", "reset", "on", "nopass", "~*", "&*", "+@all", "-scan").Err()
	if err != nil {
		t.Fatal(err)
	}
	locks := newClient(t, server.Client(func(o *redis.Options) { o.Username, o.Password = "locker", "any" }))
	s := newSite(t, locks)
	mustLock(t, locks.Mutex("order:42"))
	for _, path := range []string{"", "records"} {
		contains(t, s.get(http.StatusBadGateway, path), "Redis refuses the user", "the right to SCAN", "docs/redis.md")
	}
	contains(t, s.get(http.StatusOK, "find?q=order:42"), "<h2>Holders</h2>")
	contains(t, s.get(http.StatusOK, "cron"), "No replica has registered a job")
}
