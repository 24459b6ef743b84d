package coretest

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
)

// Foreign is a Locker that is not of this package, as those that trace or count.
type Foreign struct{ core.Locker }

// MutexBatch makes a Multi of mutexes of these names.
func MutexBatch(c *core.Client, names ...string) core.Locker {
	members := make([]core.Locker, len(names))
	for i, name := range names {
		members[i] = c.Mutex(name)
	}
	return core.Multi(members...)
}

// InTurn is mutexes for a Multi that cannot lock them all at once.
func InTurn(c *core.Client, names ...string) core.Locker {
	members := make([]core.Locker, len(names))
	for i, name := range names {
		members[i] = Foreign{c.Mutex(name)}
	}
	return core.Multi(members...)
}

// WaysToGather are the two ways in which a Multi locks its members.
var WaysToGather = map[string]func(c *core.Client, names ...string) core.Locker{
	"at once": MutexBatch, "in turn": InTurn,
}

// WantFree checks that another process can lock all these names.
func WantFree(t testing.TB, rdb redis.UniversalClient, names ...string) {
	t.Helper()
	locks := NewClient(t, rdb)
	for _, name := range names {
		lease, err := locks.Mutex(name).TryLock(context.Background())
		if err != nil {
			t.Errorf("%s is not free: %v", name, err)
			continue
		}
		Unlock(t, lease)
	}
}
