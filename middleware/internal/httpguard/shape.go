package httpguard

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
)

// ErrKeyShape refuses a key whose parts, by their names and order, are not those that the guard's key function makes.
// Such a key would be about another request, or about none.
var ErrKeyShape = errors.New("holdfast: the key is not made of the parts of this guard's keys")

// mostShapes bounds what is remembered. A key function that makes more of them puts values into names, and is not checked.
const mostShapes = 16

// shapes are the names of parts, in order, of the keys that a guard has seen. A key function like [FirstOf] makes several.
// It is safe for concurrent use.
type shapes struct{ seen atomic.Pointer[[][]string] }

// learn remembers the shape of a key.
func (s *shapes) learn(key Key) {
	for {
		seen := s.seen.Load()
		if s.has(key) || seen != nil && len(*seen) >= mostShapes {
			return
		}
		var more [][]string
		if seen != nil {
			more = slices.Clone(*seen)
		}
		more = append(more, key.names())
		if s.seen.CompareAndSwap(seen, &more) {
			return
		}
	}
}

// has reports whether a key of the same shape was seen.
func (s *shapes) has(key Key) bool {
	seen := s.seen.Load()
	return seen != nil && slices.ContainsFunc(*seen, func(names []string) bool {
		return slices.EqualFunc(names, key.parts, func(name string, p part) bool { return name == p.name })
	})
}

// check refuses a key of a shape that no request had. Keys of a scope end with an Idempotency-Key, whether or not one was
// seen.
func (s *shapes) check(key Key, scoped bool) error {
	if last := len(key.parts) - 1; scoped && (last < 1 || key.parts[last].name != idempotencyKey) {
		return fmt.Errorf("%w: %s, want a scope and %s", ErrKeyShape, quoted(key.names()), idempotencyKey)
	}
	seen := s.seen.Load()
	if seen == nil || len(*seen) >= mostShapes || s.has(key) {
		return nil
	}
	var known []string
	for _, names := range *seen {
		known = append(known, quoted(names))
	}
	return fmt.Errorf("%w: %s, want %s", ErrKeyShape, quoted(key.names()), strings.Join(known, " or "))
}

// names returns the names of the parts in order.
func (k Key) names() []string {
	names := make([]string, len(k.parts))
	for i, p := range k.parts {
		names[i] = p.name
	}
	return names
}

func quoted(names []string) string { return "(" + strings.Join(names, ", ") + ")" }
