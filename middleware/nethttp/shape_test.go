package httplock

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

func keyOf(names ...string) Key {
	var k Key
	for _, name := range names {
		k.parts = append(k.parts, part{name, "value"})
	}
	return k
}

// TestShapes: a key is refused if none of the keys before had its parts in its order.
func TestShapes(t *testing.T) {
	t.Parallel()
	var s shapes
	if err := s.check(keyOf("anything"), false); err != nil {
		t.Errorf("before any request: %v", err)
	}
	s.learn(keyOf("route", "user"))
	s.learn(keyOf("route", "cookie"))
	for _, test := range []struct {
		key Key
		ok  bool
	}{
		{keyOf("route", "user"), true},
		{keyOf("route", "cookie"), true},
		{keyOf("user", "route"), false},
		{keyOf("user"), false},
		{keyOf("route", "user", "cookie"), false},
	} {
		if err := s.check(test.key, false); (err == nil) != test.ok || err != nil && !errors.Is(err, ErrKeyShape) {
			t.Errorf("%v: %v", test.key.names(), err)
		}
	}
	err := s.check(keyOf("user"), false)
	if !strings.Contains(err.Error(), "(user), want (route, user) or (route, cookie)") || strings.Contains(err.Error(), "value") {
		t.Errorf("the error is %v", err)
	}
}

// TestShapesOfAScope: what a scope needs is known before the first request.
func TestShapesOfAScope(t *testing.T) {
	t.Parallel()
	var s shapes
	for _, key := range []Key{keyOf("user"), keyOf(idempotencyKey), keyOf(idempotencyKey, "user")} {
		if err := s.check(key, true); !errors.Is(err, ErrKeyShape) {
			t.Errorf("%v: %v", key.names(), err)
		}
	}
	if err := s.check(keyOf("user", idempotencyKey), true); err != nil {
		t.Error(err)
	}
}

// TestShapesAreBounded: a key function that puts values into names neither fills the memory nor locks operators out.
func TestShapesAreBounded(t *testing.T) {
	t.Parallel()
	var s shapes
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() { s.learn(keyOf(fmt.Sprint("user ", i))) })
	}
	all.Wait()
	if n := len(*s.seen.Load()); n != mostShapes {
		t.Errorf("%d shapes are remembered, want %d", n, mostShapes)
	}
	if err := s.check(keyOf("user 7000"), false); err != nil {
		t.Error(err)
	}
}

func BenchmarkLearnKnownShape(b *testing.B) {
	var s shapes
	key := keyOf("method", "route", "context", idempotencyKey)
	s.learn(key)
	b.ReportAllocs()
	for b.Loop() {
		s.learn(key)
	}
}
