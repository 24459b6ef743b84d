package httplock

import (
	"bytes"
	"io"
	"testing"
)

// sizedSource is a body that notes how much memory is taken at each of its reads.
type sizedSource struct {
	io.Reader
	sent  int64
	check func(sent int64)
}

func (s *sizedSource) Read(p []byte) (int, error) {
	s.check(s.sent)
	n, err := s.Reader.Read(p)
	s.sent += int64(n)
	return n, err
}

func (s *sizedSource) Close() error { return nil }

// TestBodyTakesWhatArrives: the memory of a body follows what has arrived of it. A client that sends half of a body does
// not take the memory of all of it.
func TestBodyTakesWhatArrives(t *testing.T) {
	t.Parallel()
	const limit, smallest = 1 << 20, 512
	for _, size := range []int{0, 1, smallest, smallest + 1, 10_000, limit/2 + 1, limit, limit + 1, 2 * limit} {
		m := newShares(64 << 20)
		source := &sizedSource{Reader: bytes.NewReader(make([]byte, size))}
		source.check = func(sent int64) {
			if taken := m.taken; taken > sent+sent/4+smallest {
				t.Fatalf("%d bytes are taken for %d that have arrived of %d", taken, sent, size)
			}
		}
		body := &bodyBuffer{source: source, memory: m, owner: "ada"}
		if err := body.readAhead(limit); err != nil {
			t.Fatal(err)
		}
		begin, whole := body.Bytes()
		if want := min(size, limit+1); len(begin) != want || whole != (size <= limit) {
			t.Errorf("%d bytes, whole %v, of %d", len(begin), whole, size)
		}
		if taken := m.taken; taken > max(int64(len(begin)), smallest) || taken < int64(len(begin)) {
			t.Errorf("%d bytes are taken for a body of %d", taken, len(begin))
		}
		body.release()
		if taken := m.taken; taken != 0 {
			t.Errorf("%d bytes are not given back", taken)
		}
	}
}

// TestGuardsShareMemory for bodies, unless they have their own.
func TestGuardsShareMemory(t *testing.T) {
	t.Parallel()
	memory := func(s settings) *shares { g := newGuard(s, nil, nil); return g.bodies }
	first := memory(exclusiveSettings())
	if first.most != 64<<20 || memory(onceSettings()) != first || memory(idempotentSettings(WithBodyLimit(1000))) != first {
		t.Errorf("guards have memory of %d bytes each", first.most)
	}
	own := WithBodyMemory(4 << 20)
	if m := memory(idempotentSettings(own)); m.most != 4<<20 || memory(idempotentSettings(own)) == m {
		t.Errorf("memory of %d bytes, or shared", m.most)
	}
}

// TestShares: an owner gets half of all at most, and something is left for each further one.
func TestShares(t *testing.T) {
	t.Parallel()
	s := newShares(60)
	fill := func(owner string) (n int64) {
		for s.take(owner, 1) {
			n++
		}
		return n
	}
	if a, b, c := fill("a"), fill("b"), fill("c"); a != 30 || b != 15 || c != 8 {
		t.Errorf("%d, %d and %d of 60 are taken, want 30, 15 and 8", a, b, c)
	}
	if !s.move("b", "d", 3) || s.by["d"] != 3 || s.move("a", "c", 30) || s.by["a"] != 30 {
		t.Errorf("after moves: %v", s.by)
	}
	for owner, n := range map[string]int64{"a": 30, "b": 12, "c": 8, "d": 3} {
		s.give(owner, n)
	}
	if s.taken != 0 || len(s.by) != 0 {
		t.Errorf("%d taken, %v, after all was given back", s.taken, s.by)
	}
	if one := newShares(1); !one.take("a", 1) || one.take("b", 1) {
		t.Error("the only place is not one")
	}
}

// TestOwner: what a client chooses of its key makes no other owner of it.
func TestOwner(t *testing.T) {
	t.Parallel()
	key := func(parts ...part) Key { return Key{parts} }
	user, cart, retry := part{"context", "ada"}, part{"header:X-Cart", "7"}, part{"idempotency-key", "k"}
	for name, test := range map[string]struct {
		a, b Key
		same bool
	}{
		"another cart":      {key(user, cart), key(user, part{"header:X-Cart", "8"}), true},
		"another user":      {key(user, cart), key(part{"context", "bob"}, cart), false},
		"another key":       {key(user, retry), key(user, part{"idempotency-key", "l"}), true},
		"another scope":     {key(part{"tenant", "1"}, retry), key(part{"tenant", "2"}, retry), false},
		"no user":           {key(cart), key(part{"header:X-Cart", "8"}), true},
		"a scope, no scope": {key(part{"tenant", "1"}, retry), key(part{"tenant", "1"}), false},
	} {
		if a, b := ownerOf(test.a, "192.0.2.1/32"), ownerOf(test.b, "192.0.2.1/32"); (a == b) != test.same {
			t.Errorf("%s: %q and %q", name, a, b)
		}
	}
	if ownerOf(key(cart), "192.0.2.1/32") == ownerOf(key(cart), "192.0.2.2/32") || ownerOf(key(cart), "") == ownerOf(key(user), "") {
		t.Error("two clients are one owner")
	}
}
