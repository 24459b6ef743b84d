package core_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// foreign is a Locker that is not of this package, as those that trace or count.
type foreign struct{ core.Locker }

// mutexBatch makes a Multi of mutexes of these names.
func mutexBatch(c *core.Client, names ...string) core.Locker {
	members := make([]core.Locker, len(names))
	for i, name := range names {
		members[i] = c.Mutex(name)
	}
	return core.Multi(members...)
}

// inTurn is mutexes for a Multi that cannot lock them all at once.
func inTurn(c *core.Client, names ...string) core.Locker {
	members := make([]core.Locker, len(names))
	for i, name := range names {
		members[i] = foreign{c.Mutex(name)}
	}
	return core.Multi(members...)
}

// waysToGather are the two ways in which a Multi locks its members.
var waysToGather = map[string]func(c *core.Client, names ...string) core.Locker{
	"at once": mutexBatch, "in turn": inTurn,
}

// eachWay runs a test for both ways, with a server of its own.
func eachWay(t *testing.T, test func(t *testing.T, server *testkit.Server, multi func(*core.Client, ...string) core.Locker)) {
	t.Parallel()
	for how, multi := range waysToGather {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			test(t, testkit.Start(t), multi)
		})
	}
}

// wantFree checks that another process can lock all these names.
func wantFree(t testing.TB, rdb redis.UniversalClient, names ...string) {
	t.Helper()
	locks := newClient(t, rdb)
	for _, name := range names {
		lease, err := locks.Mutex(name).TryLock(context.Background())
		if err != nil {
			t.Errorf("%s is not free: %v", name, err)
			continue
		}
		unlock(t, lease)
	}
}
