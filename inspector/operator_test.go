package inspector_test

import (
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/inspector"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestOperatorPanics: a function of WithActions that panics allows nothing, and breaks no page.
func TestOperatorPanics(t *testing.T) {
	t.Parallel()
	log, text := logged()
	locks := newClient(t, testkit.Start(t).Client(), core.WithLogger(log))
	lease := mustLock(t, locks.Mutex("name"))
	s := newSite(t, locks, inspector.WithActions(func(*http.Request) (string, error) { panic("secret") }))
	contains(t, s.get(http.StatusOK, "lock?name=name"), "Read-only")
	lacks(t, s.get(http.StatusOK, "lock?name=name"), "force-unlock")
	awaitEvent(t, s.watch("lock?name=name"), "live: ")
	s.get(http.StatusForbidden, "force-unlock?name=name")
	form := url.Values{"token": {"x"}, "confirm": {"name"}}
	if resp, body := s.do(http.MethodPost, "force-unlock?name=name", form); resp.StatusCode != http.StatusForbidden {
		t.Errorf("status %d: %s", resp.StatusCode, body)
	}
	if lease.Context().Err() != nil {
		t.Error("the lock was taken")
	}
	contains(t, text.String(), "the function of WithActions has panicked", "type=string")
	lacks(t, text.String(), "secret")
}

// TestActionsNeedAnOperator: pages without actions do not wait for the function of WithActions.
func TestActionsNeedAnOperator(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	mustLock(t, locks.Mutex("name"))
	var asked atomic.Int32
	s := newSite(t, locks, inspector.WithActions(func(*http.Request) (string, error) {
		asked.Add(1)
		return "ada", nil
	}))
	for _, path := range []string{"", "records", "cron", "process", "find?q=none", "style.css", "lock?name=name&format=json"} {
		lacks(t, s.get(http.StatusOK, path), "Read-only")
	}
	awaitEvent(t, s.watch(""), "live: ")
	if n := asked.Load(); n != 0 {
		t.Errorf("asked %d times", n)
	}
	contains(t, s.get(http.StatusOK, "lock?name=name"), "Actions as ada")
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times for a lock", n)
	}
}
