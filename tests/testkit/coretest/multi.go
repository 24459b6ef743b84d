package coretest

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
)

// MutexBatch makes a Multi of mutexes of these names.
func MutexBatch(c *core.Client, names ...string) *core.Lock {
	members := make([]*core.Lock, len(names))
	for i, name := range names {
		members[i] = c.Mutex(name)
	}
	return core.Multi(members...)
}

// InTurn makes a Multi that cannot lock its members all at once, because the last one is no mutex.
func InTurn(c *core.Client, names ...string) *core.Lock {
	members := make([]*core.Lock, len(names))
	for i, name := range names {
		members[i] = c.Mutex(name)
	}
	members[len(names)-1] = c.Write(names[len(names)-1])
	return core.Multi(members...)
}

// WaysToGather are the two ways in which a Multi locks its members.
var WaysToGather = map[string]func(c *core.Client, names ...string) *core.Lock{
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
