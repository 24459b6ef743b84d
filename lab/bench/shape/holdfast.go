package shape

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/tests/testkit/luasource"
)

// What core sends beside names and IDs, in milliseconds.
var (
	tokenMemory = milliseconds(2 * time.Hour)
	retention   = milliseconds(24 * time.Hour)
)

// process is how an attempt of a Once names its process.
var process = sync.OnceValue(func() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
})

// tag is the end of the keys that core keeps beside a lock.
func (h *Hold) tag() string {
	if h.tagText == "" {
		h.tagText = ":{" + h.key() + "}"
	}
	return h.tagText
}

func (h *Hold) released() string {
	if h.releasedText == "" {
		h.releasedText = "holdfast:released" + h.tag() + ":" + h.id()
	}
	return h.releasedText
}

func (h *Hold) channel() string { return "redisson_lock__channel" + h.tag() }

// source composes a script of files of core.
type source = func(files ...string) *redis.Script

// slowly composes a script for a server that is fifty times slower than usual, as under callgrind: it draws the next token from the
// last one for as long as Redis has that, and not for 10 ms only, in which a server at its usual speed grants hundreds of locks.
func slowly(files ...string) *redis.Script {
	const fresh = "tokenFresh = 7199990"
	text := luasource.Text(files...)
	if !strings.Contains(text, fresh) && slices.Contains(files, "compact_grant") {
		panic("compact_grant.lua has no " + fresh)
	}
	return redis.NewScript(strings.ReplaceAll(text, fresh, "tokenFresh = 0"))
}

// Mutex sends what core.Client.Mutex does.
func Mutex() Shape { return mutex(luasource.Script) }

func mutex(script source) Shape {
	acquire := script(luasource.Acquire...)
	release := script(luasource.Release...)
	return Shape{
		Name: "holdfast Mutex", Scripts: []*redis.Script{acquire, release},
		Lock: func(h *Hold) Command {
			return Command{acquire, []string{h.key(), "holdfast:token", h.released()}, []any{h.id(), milliseconds(TTL)}}
		},
		Granted: isGrant,
		Unlock: func(h *Hold, _ any) Command {
			return Command{release, []string{h.key()}, []any{h.id()}}
		},
		Released: equals(int64(1)),
		Met: func(h *Hold) Command {
			return Command{release, []string{h.key(), h.released(), "holdfast:waiting_clients" + h.tag()}, []any{h.id(), "PUBLISH"}}
		},
	}
}

// met is the reply to Unlock that asks for Met, see release_fast.lua.
const met = int64(5)

// Fair sends what core.Client.Fair does.
func Fair() Shape { return fair(luasource.Script) }

func fair(script source) Shape { return queue(script, "holdfast Fair", "fair") }

// Read sends what core.Client.Read does.
func Read() Shape { return read(luasource.Script) }

func read(script source) Shape { return queue(script, "holdfast Read", "reading") }

// Write sends what core.Client.Write does.
func Write() Shape { return write(luasource.Script) }

func write(script source) Shape { return queue(script, "holdfast Write", "writing") }

// queue is a lock with a queue in Redis.
func queue(script source, name, mode string) Shape {
	acquire := script(luasource.QueueAcquire...)
	release := script(luasource.QueueRelease...)
	command := func(script *redis.Script, h *Hold, more []string, args ...any) Command {
		tag := h.tag()
		keys := []string{
			h.key(), "holdfast:token", "holdfast:share_expiries" + tag, "holdfast:exclusive_queue" + tag,
			"holdfast:shared_queue" + tag, "holdfast:waiters" + tag, h.released(),
		}
		return Command{script, append(keys, more...), append([]any{h.channel(), "PUBLISH", h.id()}, args...)}
	}
	return Shape{
		Name: name, Scripts: []*redis.Script{acquire, release},
		Lock: func(h *Hold) Command {
			return command(acquire, h, []string{"holdfast:slots" + h.tag()}, milliseconds(TTL), mode, 1)
		},
		Granted: isGrant,
		Unlock: func(h *Hold, _ any) Command {
			return Command{release, []string{h.key()}, []any{h.id()}}
		},
		Released: equals(int64(1)),
		Met:      func(h *Hold) Command { return command(release, h, nil, mode == "writing") },
	}
}

// Once sends what core.Client.Once does for a run that completes with a value.
func Once(value string) Shape { return once(luasource.Script, value) }

func once(script source, value string) Shape {
	begin := script("once/begin_fast", "once/common", "once/group", "once/begin")
	complete := script("once/complete_fast", "publish", "once/common", "once/group",
		"once/finish_common", "once/finish")
	return Shape{
		Name: "holdfast Once", Scripts: []*redis.Script{begin, complete},
		Lock: func(h *Hold) Command {
			return Command{
				begin,
				[]string{"holdfast:once" + h.tag(), "holdfast:token", h.released()},
				[]any{h.id(), milliseconds(TTL), retention, tokenMemory, "", "", "", process()},
			}
		},
		Granted: func(reply any) bool {
			token, _ := reply.(int64)
			return token > 0
		},
		Unlock: func(h *Hold, locked any) Command { // locked is the token, see Granted
			return Command{
				complete,
				[]string{"holdfast:once" + h.tag(), h.released(), "holdfast:ended" + h.tag()},
				[]any{h.id(), retention, locked, "PUBLISH", h.channel(), value, "", "", "", "", process()},
			}
		},
		Released: equals(int64(1)),
	}
}

// OnceByHand is a Once without a library: SET with NX and the TTL of a lease begins, and SET with the retention
// completes. It does not notice if the lease has expired meanwhile.
func OnceByHand(value string) Shape {
	return Shape{
		Name: "once by hand: `SET NX PX`, `SET PX`",
		Lock: func(h *Hold) Command {
			return Command{Args: []any{"set", h.key(), h.value(22), "nx", "px", milliseconds(TTL)}}
		},
		Granted: equals("OK"),
		Unlock: func(h *Hold, _ any) Command {
			return Command{Args: []any{"set", h.key(), value, "px", retention}}
		},
		Released: equals("OK"),
	}
}
