package core

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// slotTag is the part of a key that decides its slot. Source: Redis Cluster specification, hash tags.
func slotTag(key string) string {
	open := strings.IndexByte(key, '{')
	if open < 0 {
		return key
	}
	length := strings.IndexByte(key[open+1:], '}')
	if length <= 0 {
		return key
	}
	return key[open+1 : open+1+length]
}

// FuzzKeys checks for any two names that are allowed, of clients with any prefixes: all keys and channels of a name
// share a slot, and no key of one is a key of the other, unless both are the same key in Redis. Locks and the records of
// Once are distinguished too.
func FuzzKeys(f *testing.F) {
	for _, seed := range [][2]string{
		{"a", "{a}"},
		{"a", "b"},
		{"{a}b", "a"},
		{"a:token", "a"},
		{"x{y}", "x{y}z"},
		{"", "holdfast:token:{a}"},
		{"{a}{b}", "{a}{}"},
		{"=a", "a"},
		{":{a}", "a"},
		{"{a}:forced", "{a}"},
		{"{a}:4b0c:1", "{a}"},
		{"{a}\r\nb", "{a}"},
		{"{a}\xff", "{a}\xfe"},
	} {
		f.Add("lock:", seed[0], "lock:", seed[1])
		f.Add("", seed[0], "", seed[1])
		f.Add("{app}:", seed[0], "{app}:", seed[1])
		f.Add("lock:", seed[0], "", seed[1])
		f.Add("{a}", seed[0], "", "{a}"+seed[0])
		f.Add("{a}x", seed[0], "{a}", seed[1])
	}
	f.Fuzz(func(t *testing.T, prefixA, a, prefixB, b string) {
		if checkPrefix(prefixA) != nil || checkName(prefixA, a) != nil {
			return
		}
		mine := allKeys(t, prefixA, a)
		channel, deployment := script.NewKeys(prefixA, a).Channel, script.NewKeys(prefixA, a).Deployment()
		if transport.Slot(deployment) != transport.Slot(prefixA+a) { // all locks of a slot share it
			t.Errorf("%q and %q lie in different slots", prefixA+a, deployment)
		}
		for key := range mine {
			wantSlot(t, prefixA+a, key)
		}
		wantSlot(t, prefixA+a, channel)
		wantSlot(t, prefixA+a, channel+":4b0c")
		if checkPrefix(prefixB) != nil || checkName(prefixB, b) != nil || prefixA+a == prefixB+b {
			return
		}
		for key, what := range allKeys(t, prefixB, b) {
			if mine[key] == "" {
				continue
			}
			// A group is meant to be shared by names of one tag whose clients have one prefix.
			if group, _ := script.GroupKey(prefixA, a); what != "group" || mine[key] != what || key != group || prefixA != prefixB {
				t.Errorf("%q is the %s of %q and the %s of %q", key, mine[key], prefixA+a, what, prefixB+b)
			}
		}
	})
}

func wantSlot(t *testing.T, lock, key string) {
	if slotTag(key) != slotTag(lock) || transport.Slot(key) != transport.Slot(lock) {
		t.Errorf("%q and %q lie in different slots", lock, key)
	}
}

// allKeys returns what may be in Redis about a name, with what it is, and checks that no key has two meanings.
func allKeys(t *testing.T, prefix, name string) map[string]string {
	k := script.NewKeys(prefix, name)
	once := k.Once()
	all := make(map[string]string)
	add := func(what, key string) {
		if all[key] != "" {
			t.Errorf("%q is the %s and the %s of %q", key, all[key], what, prefix+name)
		}
		all[key] = what
	}
	add("lock", k.Lock)
	add("forced", k.Forced())
	add("share expiries", k.ShareExpiries())
	add("slots", k.Slots())
	add("exclusive queue", k.ExclusiveQueue())
	add("shared queue", k.SharedQueue())
	add("waiters", k.Waiters())
	add("once", once.Lock)
	// No two of these have the same number.
	for i, id := range []string{"4b0c:", "forced:4b0c:", "forgot:4b0c:"} {
		add("end of "+id, k.Released(id+string(rune('1'+i))))
	}
	if group, ok := script.GroupKey(prefix, name); ok {
		add("group", group)
	}
	return all
}

func TestReservedNames(t *testing.T) {
	t.Parallel()
	if checkName("", "holdfast:x") == nil || checkName("holdfast:", "x") == nil {
		t.Error("a reserved key was allowed")
	}
	if err := checkName("lock:", "holdfast:x"); err != nil {
		t.Errorf("refused: %v", err)
	}
	if checkName("{", "a}") != nil {
		t.Error("braces that the name closes for the prefix were refused")
	}
}

func checkName(prefix, name string) error {
	_, err := keysOf(prefix, name)
	return err
}
