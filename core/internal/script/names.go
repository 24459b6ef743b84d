package script

import (
	"fmt"
	"strings"
)

// maxName bounds names of locks and prefixes, in bytes.
const maxName = 512

// KeysOf returns the keys of a name, or why the name cannot be that of a lock. It refuses what Redis would take but would not
// keep apart or together. Braces are the point: in a Cluster the text in the first pair decides the slot, and all keys of one
// lock must share a slot. Source: Redis Cluster specification, hash tags.
//
// All else is taken as it is, even newlines and invalid UTF-8: Redis counts bytes, and names are no part of any script.
func KeysOf(prefix, name string) (Keys, error) {
	switch { // before keys are made of a name that has megabytes
	case name == "":
		return Keys{}, fmt.Errorf("empty")
	case len(name) > maxName:
		return Keys{}, fmt.Errorf("%d bytes, at most %d are allowed", len(name), maxName)
	}
	k := NewKeys(prefix, name)
	switch {
	case strings.ContainsRune(name, 0):
		return Keys{}, fmt.Errorf("%q contains a NUL byte", name)
	case !balanced(k.Lock):
		return Keys{}, fmt.Errorf("braces of %q are not balanced", k.Lock)
	case emptyTag(k.Lock):
		return Keys{}, fmt.Errorf("the first pair of braces in %q is empty", k.Lock)
	case strings.HasPrefix(k.Lock, Reserved):
		return Keys{}, fmt.Errorf("%q begins with %q, which is reserved", k.Lock, Reserved)
	}
	return k, nil
}

// NameOf returns the name of the lock at a key. It returns false if the key is not that of a lock with this prefix.
func NameOf(prefix, key string) (name string, ok bool) {
	name, ok = strings.CutPrefix(key, prefix)
	if ok {
		_, err := KeysOf(prefix, name)
		ok = err == nil
	}
	return name, ok
}

// NameOfOnce returns the name of the record at a key, see Keys.Once. It returns false if the key is not that of a record with
// this prefix.
func NameOfOnce(prefix, key string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(key, Reserved+"once")
	switch {
	case !ok:
		return "", false
	case strings.HasPrefix(rest, "="):
		name, ok = NameOf(prefix, rest[1:])
	case strings.HasPrefix(rest, ":{") && strings.HasSuffix(rest, "}"):
		name, ok = NameOf(prefix, rest[2:len(rest)-1])
	}
	return name, ok && NewKeys(prefix, name).Once().Lock == key
}

// CheckPrefix returns why no name could be used with a prefix, or nil.
func CheckPrefix(prefix string) error {
	open := strings.Count(prefix, "{") - strings.Count(prefix, "}")
	switch {
	case len(prefix) > maxName:
		return fmt.Errorf(": %d bytes, at most %d are allowed", len(prefix), maxName)
	case strings.ContainsRune(prefix, 0):
		return fmt.Errorf("(%q): contains a NUL byte", prefix)
	case open < 0, !balanced(prefix + strings.Repeat("}", max(open, 0))):
		return fmt.Errorf("(%q): it closes a brace that is not open", prefix)
	case emptyTag(prefix):
		return fmt.Errorf("(%q): its first pair of braces is empty", prefix)
	case strings.HasPrefix(prefix, Reserved):
		return fmt.Errorf("(%q): %q is reserved", prefix, Reserved)
	}
	return nil
}

// balanced returns true if each brace in s has its counterpart.
func balanced(s string) bool {
	depth := 0
	for _, r := range s {
		switch r {
		case '{':
			depth++
		case '}':
			depth--
		}
		if depth < 0 {
			return false
		}
	}
	return depth == 0
}

// emptyTag returns true if the first pair of braces in s is empty.
func emptyTag(s string) bool {
	_, rest, found := strings.Cut(s, "{")
	return found && strings.HasPrefix(rest, "}")
}
