package core_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestConnectionName: Redis takes the name, whatever the service is called, and tells it for each connection of locks.
func TestConnectionName(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	name := core.ConnectionName("my shop\nü")
	locks := newClient(t, server.Client(func(o *redis.Options) { o.ClientName = name }))
	held := mustLock(t, newClient(t, server.Client()).Mutex("name"))
	waiting := lockLater(locks.Mutex("name"))
	awaitListeners(t, locks, "name", 1)
	named := 0
	for line := range strings.Lines(clientList(t, server)) {
		if strings.Contains(line, " name="+name+" ") {
			named++
		}
	}
	if named < 2 || !strings.HasPrefix(name, "my_shop__@") {
		t.Errorf("%d connections have the name %q, want that of commands and that of the subscription:\n%s", named, name, clientList(t, server))
	}
	unlock(t, held)
	if err := receive(t, waiting); err != nil {
		t.Error(err)
	}
}
