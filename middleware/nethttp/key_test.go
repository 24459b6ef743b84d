package httplock

import (
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

func mustKey(t testing.TB, texts ...string) Key {
	t.Helper()
	var keys []Key
	for i := 0; i+1 < len(texts); i += 2 {
		k, err := NewKey(texts[i], texts[i+1])
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, k)
	}
	k, err := Join(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestHashTellsKeysApart(t *testing.T) {
	t.Parallel()
	seen := map[string][]string{}
	for _, texts := range [][]string{
		{"a", "b"},
		{"ab", "c"},
		{"a", "bc"},
		{"b", "a"},
		{"a", "b", "c", "d"},
		{"c", "d", "a", "b"},
		{"a", "b:c:d"},
		{"a:b", "c:d"},
		{"a", "b", "", "c"},
		{"a", "b\x00c"},
		{"a", "b\x00", "c", "d"},
		{"a", "b", "a", "b"},
		{"user", "ada"},
		{"user", "Ada"},
	} {
		hash := mustKey(t, texts...).Hash()
		if other, dup := seen[hash]; dup {
			t.Errorf("%q and %q have the same hash", texts, other)
		}
		seen[hash] = texts
		if !regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`).MatchString(hash) {
			t.Errorf("hash %q", hash)
		}
	}
}

// Names of locks must not change between versions: during an update, the old and the new one would not exclude
// each other.
func TestHashIsStable(t *testing.T) {
	t.Parallel()
	const want = "8zCOn6gPeT3Ycjjt6KIHMfhVe_M8ORI961qNo_vrO_I"
	if got := mustKey(t, "user", "ada", "path:id", "7").Hash(); got != want {
		t.Errorf("hash %q, want %q", got, want)
	}
}

func TestHashWithSecret(t *testing.T) {
	t.Parallel()
	key := mustKey(t, "user", "ada", "path:id", "7")
	for secret, want := range map[string]string{
		"":       key.Hash(),
		"secret": "nMbtemkE3hgwerKqVfQjiQT1LOFpE20lgzOTM-1GekY",
	} {
		if got := key.HashWith([]byte(secret)); got != want {
			t.Errorf("secret %q: hash %q, want %q", secret, got, want)
		}
	}
	if got := key.HashWith(nil); got != key.Hash() {
		t.Errorf("no secret: hash %q, want that without", got)
	}
	other := mustKey(t, "user", "Ada", "path:id", "7")
	if key.HashWith([]byte("s")) == other.HashWith([]byte("s")) {
		t.Error("two keys, one hash")
	}
}

// TestKeyName: operators find a record under the name that the guards give it.
func TestKeyName(t *testing.T) {
	t.Parallel()
	user, idempotency := mustKey(t, "context", "ada"), mustKey(t, "idempotency-key", "k1")
	both, err := Join(user, idempotency)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"", "secret"} {
		hash := func(k Key) string { return k.HashWith([]byte(secret)) }
		if got, want := user.Name([]byte(secret)), "http:"+hash(user); got != want {
			t.Errorf("name %q, want %q", got, want)
		}
		if got, want := both.Name([]byte(secret)), "http:{"+hash(user)+"}:"+hash(both); got != want {
			t.Errorf("name %q, want %q", got, want)
		}
	}
}

func TestKeyBounds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		length int
		want   error
	}{{0, ErrKeyRequired}, {1, nil}, {255, nil}, {256, ErrKeyInvalid}} {
		if _, err := NewKey("n", strings.Repeat("x", test.length)); !errors.Is(err, test.want) {
			t.Errorf("%d bytes: %v, want %v", test.length, err, test.want)
		}
	}
}

func TestJoinNeedsAllParts(t *testing.T) {
	t.Parallel()
	for _, keys := range [][]Key{nil, {{}}, {mustKey(t, "a", "b"), {}}} {
		if _, err := Join(keys...); !errors.Is(err, ErrKeyRequired) {
			t.Errorf("%d keys: %v", len(keys), err)
		}
	}
}

func TestKeyIsNotPrinted(t *testing.T) {
	t.Parallel()
	k := mustKey(t, "user", "ada")
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if text := fmt.Sprintf(format, k); strings.Contains(text, "ada") {
			t.Errorf("%s prints %s", format, text)
		}
	}
}

// FuzzKeys cuts two texts into parts and compares: the hashes are the same if and only if the keys are.
func FuzzKeys(f *testing.F) {
	f.Add("ab", "ab", uint8(1), uint8(1))
	f.Add("abcd", "abcd", uint8(1), uint8(2))
	f.Add("a:bc", "a:bc", uint8(2), uint8(3))
	f.Add("aa\x00\x00bb", "aa\x00\x00bb", uint8(2), uint8(4))
	one := string(binary.BigEndian.AppendUint64(nil, 1))
	f.Add("a"+one+"b"+one+"c", "a"+one+"b"+one+"c", uint8(1), uint8(9))
	f.Fuzz(func(t *testing.T, a, b string, cutA, cutB uint8) {
		x, okX := cut(a, int(cutA))
		y, okY := cut(b, int(cutB))
		if !okX || !okY {
			t.Skip("no keys")
		}
		if same := x.Hash() == y.Hash(); same != x.Equal(y) {
			t.Errorf("%q cut at %d, %q cut at %d: same hash %v", a, cutA, b, cutB, same)
		}
	})
}

// cut makes a key whose parts have names and values of at most size bytes.
func cut(text string, size int) (Key, bool) {
	if size == 0 {
		return Key{}, false
	}
	take := func() string {
		n := min(size, len(text))
		piece := text[:n]
		text = text[n:]
		return piece
	}
	var keys []Key
	for text != "" {
		name := take()
		k, err := NewKey(name, take())
		if err != nil {
			return Key{}, false
		}
		keys = append(keys, k)
	}
	k, err := Join(keys...)
	return k, err == nil
}
