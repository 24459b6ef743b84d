package inspector_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestCluster: the parts of a list lead through all masters of a Cluster.
func TestCluster(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.StartCluster(t, 3).Client())
	s := newSite(t, locks)
	for i := range 30 {
		mustLock(t, locks.Fair(fmt.Sprint("order:", i)))
	}
	seen := make(map[string]bool)
	for cursor, parts := "", 0; parts == 0 || cursor != ""; parts++ {
		var part struct {
			Next  string
			Locks []struct{ Name string }
		}
		s.data("?prefix=order:&cursor="+url.QueryEscape(cursor), &part)
		for _, l := range part.Locks {
			seen[l.Name] = true
		}
		cursor = part.Next
	}
	if len(seen) != 30 {
		t.Errorf("%d locks were listed", len(seen))
	}
	contains(t, s.get(http.StatusOK, "find?q=order:7"), "<h2>Holders</h2>")
	contains(t, s.get(http.StatusOK, "find?q="+seal.NamesOf(locks).Digest("order:7", false)), "<span class=\"name\">order:7</span>")
}
