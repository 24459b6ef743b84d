package core_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestRedlockOfSlowServers: servers that are all slow, as on a busy host, grant a free lock with a short TTL too. A round trip
// takes 60 ms. The first Redlock opens the connections, so that the others need one round trip for each request.
func TestRedlockOfSlowServers(t *testing.T) {
	t.Parallel()
	var nodes []redis.UniversalClient
	for _, server := range startMasters(t, 3).servers {
		relay := server.Relay()
		relay.Delay(testkit.Both, 30*time.Millisecond)
		nodes = append(nodes, relay.Client())
	}
	patient := newRedlock(t, nodes, core.WithNodeTimeout(time.Minute))
	unlock(t, mustLock(t, patient.Mutex("name")))
	short := core.WithTTL(4 * time.Second)
	unlock(t, mustLock(t, newRedlock(t, nodes).Mutex("name"), short))
	impatient := newRedlock(t, nodes, core.WithNodeTimeout(50*time.Millisecond))
	_, err := impatient.Mutex("name").TryLock(t.Context(), short)
	wantErr(t, err, core.ErrUnavailable)
}
