package inspector_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestBars: a time left that exceeds the TTL of the client has no bar, which would be full whatever is left of it.
func TestBars(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	s := newSite(t, locks)
	mustLock(t, locks.Mutex("fixed"), core.WithFixedTTL(time.Hour))
	body := s.get(http.StatusOK, "lock?name=fixed")
	contains(t, body, "59 min")
	lacks(t, body, "<progress")
	contains(t, s.get(http.StatusOK, "process"), `<progress max="3600000"`) // the process has the whole TTL
	mustLock(t, locks.Mutex("renewed"))
	contains(t, s.get(http.StatusOK, "lock?name=renewed"), `<progress max="30000"`)
}
