package coretest

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
)

// Mutexes makes a Multi of mutexes of these names.
func Mutexes(c *core.Client, names ...string) *core.Lock {
	members := make([]*core.Lock, len(names))
	for i, name := range names {
		members[i] = c.Mutex(name)
	}
	return core.Multi(members...)
}

// MutexesAndWrite makes a Multi of mutexes, and of a write lock of the last name.
func MutexesAndWrite(c *core.Client, names ...string) *core.Lock {
	members := make([]*core.Lock, len(names))
	for i, name := range names {
		members[i] = c.Mutex(name)
	}
	members[len(names)-1] = c.Write(names[len(names)-1])
	return core.Multi(members...)
}

// Multis make a Multi of members of one strategy, and of two.
var Multis = map[string]func(c *core.Client, names ...string) *core.Lock{
	"mutexes": Mutexes, "mutexes and a write lock": MutexesAndWrite,
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
