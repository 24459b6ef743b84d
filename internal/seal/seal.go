// Package seal hands from core to the packages of this repository what users of a lock do not need, so that core exports
// no names for it.
package seal

import (
	"context"
	"log/slog"
	"reflect"
)

// Facts are what adapters know of a value of core beyond its API.
type Facts struct {
	// Logger is that of [core.WithLogger]. It is never nil.
	Logger *slog.Logger
	// Hooks is the *core.Hooks of the client. It is nil for a value that has no client.
	Hooks any
	// Instance is that of [core.WithInstance]. It is "" for a value that has no client.
	Instance string
	// Mode is the [core.Mode] in which a lock is acquired. For a Multi it is that of readers if all members are readers, and
	// otherwise that of its first other member. It is "" for a Multi without members, and for what is no lock.
	Mode string
	// Limit is how many owners can hold a lock at a time: n of a semaphore, divided by the permits of each. For a Multi of
	// semaphores it is the smallest of its members' limits. It is 0 for other locks.
	Limit int
	// Eval asks Redis once to run a script of an adapter, which declares the one key "holdfast:<kind>" of a name. Its errors are those
	// of [core.Once.Peek]. It is nil except for a client.
	Eval func(ctx context.Context, script, kind, name string, args ...any) (any, error)
	// Run runs a function under a lease and unlocks, as Do of a lock does. It is nil except for a lease.
	Run func(ctx context.Context, fn func(context.Context) error) error
}

// Source returns the facts of a value.
type Source interface{ Facts() Facts }

// Handle is embedded in the values of core that have facts, by an unexported name. The zero value has no facts but a logger.
type Handle struct{ source Source }

// HandleOf returns the handle of a source.
func HandleOf(s Source) Handle { return Handle{s} }

func (h Handle) facts() Facts {
	if h.source == nil {
		return Facts{Logger: slog.Default()}
	}
	return h.source.Facts()
}

// FactsOf returns the facts of a client, a lock, a lease or an election of core. Those of a nil pointer are those of a zero
// value.
func FactsOf(x interface{ facts() Facts }) Facts {
	if v := reflect.ValueOf(x); v.Kind() == reflect.Pointer && v.IsNil() {
		return Handle{}.facts()
	}
	return x.facts()
}

// Option is an option of a guard, from core, from internal/guard or from an adapter: a type that embeds a [Mark].
type Option interface{ mark() Mark }

// Mark makes a type an [Option], and describes it to guards.
type Mark struct {
	// Name is what users call it: "core.WithTTL".
	Name string
	// Value is the argument if guards read it, and nil otherwise.
	Value any
}

func (m Mark) mark() Mark { return m }

// MarkOf returns the mark of an option.
func MarkOf(o Option) Mark { return o.mark() }
