package inspector_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/inspector"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestRedisUnreachable: pages say so with 503, in HTML and JSON, and what this process holds is still shown.
func TestRedisUnreachable(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
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
	contains(t, s.get(http.StatusOK, "process"), "order:42", "Redis does not answer")
}

// TestRedisIsFrozen: a Redis that does not answer keeps no request for longer than the limit of a page.
func TestRedisIsFrozen(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	s := newSite(t, newClient(t, server.Client()))
	s.get(http.StatusOK, "")
	server.Pause()
	contains(t, s.get(http.StatusServiceUnavailable, ""), "Redis does not answer")
	server.Resume()
}

// TestActionsWhileRedisIsFrozen: nothing is said to be done that has not been, neither to the operator nor in the log.
func TestActionsWhileRedisIsFrozen(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	log, text := logged()
	locks := newClient(t, server.Client(), core.WithLogger(log))
	c := addJob(t, newClient(t, server.Client()), "job", func(context.Context) error { return nil })
	var audit audits
	s := newSite(t, locks, inspector.WithActions(asAda), inspector.WithCron(c), inspector.WithAudit(audit.record))
	form := url.Values{"token": {s.token("run-now?name=job")}, "confirm": {"job"}}
	server.Pause()
	resp, body := s.do(http.MethodPost, "run-now?name=job", form)
	if resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("status %d: %s", resp.StatusCode, body)
	}
	server.Resume()
	if a := audit.last(t); a.Err == nil || a.Pending {
		t.Errorf("audit %+v", a)
	}
	contains(t, text.String(), "an action has failed")
	lacks(t, text.String(), "an action was done")
}

// TestWithoutScan: a user without the right to SCAN gets a page that names it, and looks up a lock by its name.
func TestWithoutScan(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	err := server.Client().Do(context.Background(), "ACL", "SETUSER", "locker", "reset", "on", "nopass", "~*", "&*", "+@all", "-scan").Err()
	if err != nil {
		t.Fatal(err)
	}
	locks := newClient(t, server.Client(func(o *redis.Options) { o.Username, o.Password = "locker", "any" }))
	s := newSite(t, locks)
	mustLock(t, locks.Mutex("order:42"))
	for _, path := range []string{"", "records"} {
		contains(t, s.get(http.StatusBadGateway, path), "Redis refuses the user", "the right to SCAN", "docs/keys-and-rights.md")
	}
	contains(t, s.get(http.StatusOK, "find?q=order:42"), "<h2>Holders</h2>")
	contains(t, s.get(http.StatusOK, "cron"), "No replica has registered a job")
}
