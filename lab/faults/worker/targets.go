package worker

import (
	"fmt"

	"github.com/holdfast-go/holdfast/core"
)

// target is something to lock.
type target struct {
	strategy string
	names    []string
	shared   bool
	limit    int // of a semaphore
	permits  int
	lock     *core.Lock
}

// targets mixes strategies: some names are contended for by one of them only, some by several.
func targets(c *core.Client) []target {
	one := func(strategy string, make core.Strategy, name string) target {
		return target{strategy: strategy, names: []string{name}, shared: strategy == "read", lock: make(name)}
	}
	both := func(a, b target) target {
		return target{
			strategy: "multi", names: append(append([]string(nil), a.names...), b.names...), lock: core.Multi(a.lock, b.lock),
		}
	}
	return []target{
		one("mutex", c.Mutex, "{a}1"), one("mutex", c.Mutex, "b"), one("mutex", c.Mutex, "b"),
		one("fair", c.Fair, "c"), one("fair", c.Fair, "d"), one("fair", c.Fair, "d"),
		one("read", c.Read, "e"), one("read", c.Read, "e"), one("write", c.Write, "e"),
		one("mutex", c.Mutex, "f"), one("fair", c.Fair, "f"), one("read", c.Read, "f"), one("write", c.Write, "f"),
		limited(c, 3, 1), limited(c, 3, 1), limited(c, 3, 2), limited(c, 4, 1), one("write", c.Write, "h"),
		both(one("mutex", c.Mutex, "{a}2"), one("mutex", c.Mutex, "{a}1")),
		both(one("fair", c.Fair, "c"), one("mutex", c.Mutex, "g")),
	}
}

// limited is some permits of a semaphore.
func limited(c *core.Client, limit, permits int) target {
	return target{
		strategy: fmt.Sprintf("%d of %d", permits, limit), names: []string{"h"}, shared: true, limit: limit, permits: permits,
		lock: c.Semaphore("h", limit, core.WithPermits(permits)),
	}
}

func redlockTargets(r *core.Redlock) (all []target) {
	for _, name := range []string{"a", "b", "c"} {
		all = append(all, target{strategy: "redlock", names: []string{name}, lock: r.Mutex(name)})
	}
	return all
}
