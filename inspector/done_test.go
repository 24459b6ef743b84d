package inspector_test

import (
	"net/http"
	"testing"

	"github.com/holdfast-go/holdfast/inspector"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestDoneIsSaidOnce: only the page behind the redirect of an action says that it was done. A reload or a link does not.
func TestDoneIsSaidOnce(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	s := newSite(t, locks, inspector.WithActions(asAda))
	const said = "The lock was taken"
	lacks(t, s.get(http.StatusOK, "lock?name=a&done=force-unlock"), said)
	mustLock(t, locks.Mutex("a"))
	form := s.form("force-unlock?name=a")
	form.Set("confirm", "a")
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, body := s.do(http.MethodPost, "force-unlock?name=a", form)
	if got := resp.Header.Get("Location"); resp.StatusCode != http.StatusSeeOther || got != "./lock?name=a" {
		t.Fatalf("status %d, to %q: %s", resp.StatusCode, got, body)
	}
	contains(t, s.get(http.StatusOK, "lock?name=a"), said)
	lacks(t, s.get(http.StatusOK, "lock?name=a"), said) // loaded again

	mustLock(t, locks.Mutex("a"))
	form = s.form("force-unlock?name=a")
	form.Set("confirm", "a")
	s.do(http.MethodPost, "force-unlock?name=a", form)
	lacks(t, s.get(http.StatusOK, "lock?name=b"), said) // of another lock
}
