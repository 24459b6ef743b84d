package shape

import (
	"time"

	"github.com/redis/go-redis/v9"
)

// Nothing sends two scripts that do nothing: what any two scripts cost.
func Nothing() Shape {
	script := redis.NewScript("return 0")
	command := func(h *Hold) Command { return Command{script, []string{h.key()}, []any{h.value(22)}} }
	return Shape{
		Name: "two scripts `return 0`", Scripts: []*redis.Script{script},
		Lock: command, Granted: equals(int64(0)),
		Unlock: func(h *Hold, _ any) Command { return command(h) }, Released: equals(int64(0)),
	}
}

// SetNX is the lock of the Redis documentation: SET with NX and PX, and a script that deletes the key if its value is
// still the holder's.
func SetNX() Shape {
	script := redis.NewScript(
		`if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`)
	return Shape{
		Name: "`SET NX PX`, comparing `DEL`", Scripts: []*redis.Script{script},
		Lock: func(h *Hold) Command {
			return Command{Args: []any{"set", h.key(), h.value(22), "nx", "px", milliseconds(TTL)}}
		},
		Granted:  equals("OK"),
		Unlock:   func(h *Hold, _ any) Command { return Command{script, []string{h.key()}, []any{h.value(22)}} },
		Released: equals(int64(1)),
	}
}

// Redsync sends what redsync does.
func Redsync() Shape {
	script := scriptVariable("github.com/go-redsync/redsync/v4", "scripts.go", "deleteScript")
	return Shape{
		Name: "redsync", Scripts: []*redis.Script{script},
		Lock: func(h *Hold) Command {
			return Command{Args: []any{"set", h.key(), h.value(24), "ex", int64(TTL / time.Second), "nx"}}
		},
		Granted:  equals("OK"),
		Unlock:   func(h *Hold, _ any) Command { return Command{script, []string{h.key()}, []any{h.value(24)}} },
		Released: equals(int64(1)),
	}
}

// Redislock sends what redislock does.
func Redislock() Shape {
	const module, length = "github.com/bsm/redislock", 22
	obtain, release := scriptFile(module, "obtain.lua"), scriptFile(module, "release.lua")
	return Shape{
		Name: "redislock", Scripts: []*redis.Script{obtain, release},
		Lock: func(h *Hold) Command {
			return Command{obtain, []string{h.key()}, []any{h.value(length), length, milliseconds(TTL)}}
		},
		Granted:  equals("OK"),
		Unlock:   func(h *Hold, _ any) Command { return Command{release, []string{h.key()}, []any{h.value(length)}} },
		Released: equals("OK"),
	}
}

// Rueidislock sends what rueidislock does with one key, on a connection that tracks keys as its own does.
func Rueidislock() Shape {
	const module, file, length = "github.com/redis/rueidis", "rueidislock/lock.go", 24
	acquire, remove := scriptVariable(module, file, "acqat"), scriptVariable(module, file, "delkey")
	command := func(script *redis.Script, h *Hold) Command {
		deadline := time.Now().Add(TTL).UnixMilli()
		return Command{script, []string{"rueidislock:0:" + h.Name}, []any{h.value(length), deadline}}
	}
	return Shape{
		Name: "rueidislock, 1 key", Scripts: []*redis.Script{acquire, remove},
		Setup: []Command{{Args: []any{"client", "tracking", "on", "optout", "noloop"}}},
		Lock:  func(h *Hold) Command { return command(acquire, h) }, Granted: equals("OK"),
		Unlock: func(h *Hold, _ any) Command { return command(remove, h) }, Released: equals(int64(1)),
	}
}
