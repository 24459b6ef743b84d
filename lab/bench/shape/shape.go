// Package shape has the bare commands of locks: what a library sends for the lock and unlock of one free name, without
// the library. So the cost of the commands can be measured apart from the client.
package shape

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/tests/testkit/luasource"
)

// TTL is the TTL of every lock: whole seconds, because go-zero counts in them.
const TTL = 30 * time.Second

// Hold is one lock of one name. It keeps the texts that its commands share, as libraries do. It must not be used by several
// goroutines at once.
type Hold struct {
	Name   string
	Number int64 // not used for another hold of the same shape

	keyText, idText, tagText, releasedText string // "" until they are needed
}

// client is the ID of this process in owners, as libraries have one.
var client = uuid.NewString()

// id is the ID of the hold in libraries that count their holds or threads.
func (h *Hold) id() string {
	if h.idText == "" {
		h.idText = client + ":" + strconv.FormatInt(h.Number, 10)
	}
	return h.idText
}

// value returns the value of the hold in libraries that make n random bytes for it.
func (h *Hold) value(n int) string {
	digits := strconv.FormatInt(h.Number, 10)
	return client[:n-len(digits)-1] + "-" + digits
}

// key is the key at which most shapes have the lock.
func (h *Hold) key() string {
	if h.keyText == "" {
		h.keyText = "lock:" + h.Name
	}
	return h.keyText
}

// Command is a script with its keys and arguments.
type Command struct {
	Script *redis.Script // nil if Args are a whole command without a script
	Keys   []string
	Args   []any
}

// Queue adds the command to a pipeline. The script must have been loaded.
func (c Command) Queue(ctx context.Context, pipe redis.Pipeliner) *redis.Cmd {
	if c.Script == nil {
		return pipe.Do(ctx, c.Args...)
	}
	return c.Script.EvalSha(ctx, pipe, c.Keys, c.Args...)
}

// Run sends a command that has a script, and returns the reply. The script must have been loaded.
func (c Command) Run(ctx context.Context, through redis.Scripter) (any, error) {
	return Reply(c.Script.EvalSha(ctx, through, c.Keys, c.Args...))
}

// Reply returns the reply to a command: nil for the nil of Redis, which is no error here.
func Reply(cmd *redis.Cmd) (any, error) {
	reply, err := cmd.Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return reply, err
}

// Shape is what a library sends for a lock and an unlock that no other meets: one command each.
type Shape struct {
	Name    string
	Scripts []*redis.Script // must be loaded before
	Setup   []Command       // of each connection, before its first lock

	Lock     func(h *Hold) Command
	Granted  func(reply any) bool              // reports whether the lock was granted, by the reply to Lock
	Unlock   func(h *Hold, locked any) Command // locked is the reply to Lock
	Released func(reply any) bool              // reports whether the lock was released, by the reply to Unlock
	// Met is what is sent in place of Unlock if others have asked for the lock meanwhile, as the reply to Unlock says; nil if that is the
	// same.
	Met func(h *Hold) Command
}

// Release runs Unlock, and Met if the reply asks for it. It returns the reply to the last.
func (s Shape) Release(h *Hold, locked any, run func(Command) (any, error)) (any, error) {
	reply, err := run(s.Unlock(h, locked))
	if err == nil && s.Met != nil && reply == met {
		return run(s.Met(h))
	}
	return reply, err
}

// All returns every shape, in the order of the tables.
func All() []Shape { return all(luasource.Script) }

// Slow returns every shape for a server that is far slower than usual, see [slowly].
func Slow() []Shape { return all(slowly) }

func all(script source) []Shape {
	return []Shape{
		Nothing(), SetNX(), Redsync(), Redislock(), Rueidislock(), Redisson(), mutex(script), fair(script), read(script),
		write(script), once(script, "order"), OnceByHand("order"),
	}
}

// equals returns a check of replies.
func equals(want any) func(any) bool { return func(reply any) bool { return reply == want } }

// begins returns a check of replies that are lists.
func begins(want any) func(any) bool {
	return func(reply any) bool {
		list, _ := reply.([]any)
		return len(list) > 0 && list[0] == want
	}
}

// isGrant accepts a fencing token, or a list of 1 and the token.
func isGrant(reply any) bool {
	token, _ := reply.(int64)
	return token > 1_000_000 || begins(int64(1))(reply)
}

func milliseconds(d time.Duration) int64 { return d.Milliseconds() }
