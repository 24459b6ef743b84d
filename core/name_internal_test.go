package core

import (
	"strings"
	"testing"
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

// FuzzKeys checks for any two names that are allowed: all keys and channels of a name share a slot, and no key of one is a key
// of the other.
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
	} {
		f.Add("lock:", seed[0], seed[1])
		f.Add("", seed[0], seed[1])
		f.Add("{app}:", seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, prefix, a, b string) {
		if checkName(prefix, a) != nil {
			return
		}
		mine := allKeys(prefix + a)
		channel := newKeys(prefix + a).channel
		for _, key := range append(mine, channel, channel+":4b0c") {
			if slotTag(key) != slotTag(mine[0]) {
				t.Errorf("%q and %q lie in different slots", mine[0], key)
			}
		}
		if a == b || checkName(prefix, b) != nil {
			return
		}
		for _, theirs := range allKeys(prefix + b) {
			for _, key := range mine {
				if key == theirs {
					t.Errorf("%q and %q share the key %q", a, b, key)
				}
			}
		}
	})
}

func allKeys(lock string) []string {
	k := newKeys(lock)
	return k.line(k.released("4b0c:1"), k.released("4b0c:2"))
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
