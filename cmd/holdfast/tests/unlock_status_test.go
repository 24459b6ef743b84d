package holdfast_test

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestUnlockOfNobody: unlock that names a holder who is gone unlocks nothing and exits with 1, also as JSON.
func TestUnlockOfNobody(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	lease, err := newLocks(t, srv).Fair("n").Lock(t.Context(), core.WithOwner("o"))
	if err != nil {
		t.Fatal(err)
	}
	for _, holder := range [][]string{{"--token", "7"}, {"--owner", "other"}} {
		run(t, urlOf(srv), append([]string{"unlock", "n", "--yes"}, holder...)...).want(t, 1, "", "not held so")
		asJSON := run(t, urlOf(srv), append([]string{"unlock", "n", "--yes", "--json"}, holder...)...)
		asJSON.want(t, 1, asJSON.stdout, "not held so")
		if !strings.Contains(asJSON.stdout, `"unlocked":false`) {
			t.Errorf("%v: %s", holder, asJSON.stdout)
		}
	}
	if err := lease.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}
