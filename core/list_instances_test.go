package core_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestListOfInstances: a list has the instance of each holder, and none for an owner that WithOwner has named.
func TestListOfInstances(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := newClient(t, server.Client())
	one, two := newClient(t, server.Client(), core.WithInstance("web-1")), newClient(t, server.Client(), core.WithInstance("web-2"))
	mustLock(t, one.Read("shared"))
	mustLock(t, two.Read("shared"))
	mustLock(t, two.Mutex("named"), core.WithOwner("operator"))
	testkit.Eventually(t, within, "both instances", func() bool {
		found := make(map[string]bool)
		for _, h := range listAll(t, locks, "")["shared"].Holders {
			found[h.Instance] = true
		}
		return found["web-1"] && found["web-2"]
	})
	if h := listAll(t, locks, "")["named"].Holders; len(h) != 1 || h[0].Instance != "" {
		t.Errorf("holders %+v", h)
	}
}
