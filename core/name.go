package core

import (
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/core/internal/lockscript"
)

// maxName bounds lock names, in bytes.
const maxName = 512

// keysOf returns the keys of a name. It refuses what Redis would take but would not keep apart or together. Braces are
// the point: in a Cluster the text in the first pair decides the slot, and everything about one lock must share a slot.
// Source: Redis Cluster specification, hash tags.
//
// All else is taken as it is, newlines and invalid UTF-8 too: Redis counts bytes, and names are no part of any script.
func keysOf(prefix, name string) (lockscript.Keys, error) {
	switch { // before anything is made of a name that has megabytes
	case name == "":
		return lockscript.Keys{}, fmt.Errorf("%w: empty", ErrInvalidName)
	case len(name) > maxName:
		return lockscript.Keys{}, fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrInvalidName, len(name), maxName)
	}
	k := lockscript.NewKeys(prefix, name)
	switch {
	case strings.ContainsRune(name, 0):
		return lockscript.Keys{}, fmt.Errorf("%w: %q contains a NUL byte", ErrInvalidName, name)
	case !balanced(k.Lock):
		return lockscript.Keys{}, fmt.Errorf("%w: braces of %q are not balanced", ErrInvalidName, k.Lock)
	case emptyTag(k.Lock):
		return lockscript.Keys{}, fmt.Errorf("%w: the first pair of braces in %q is empty", ErrInvalidName, k.Lock)
	case strings.HasPrefix(k.Lock, lockscript.Reserved):
		return lockscript.Keys{}, fmt.Errorf("%w: %q begins with %q, which is reserved", ErrInvalidName, k.Lock, lockscript.Reserved)
	}
	return k, nil
}

// checkPrefix refuses prefixes with which no name could be used.
func checkPrefix(prefix string) error {
	open := strings.Count(prefix, "{") - strings.Count(prefix, "}")
	switch {
	case len(prefix) > maxName:
		return invalidOption("WithPrefix: %d bytes, at most %d are allowed", len(prefix), maxName)
	case strings.ContainsRune(prefix, 0):
		return invalidOption("WithPrefix(%q): contains a NUL byte", prefix)
	case open < 0, !balanced(prefix + strings.Repeat("}", max(open, 0))):
		return invalidOption("WithPrefix(%q): it closes a brace that is not open", prefix)
	case emptyTag(prefix):
		return invalidOption("WithPrefix(%q): its first pair of braces is empty", prefix)
	case strings.HasPrefix(prefix, lockscript.Reserved):
		return invalidOption("WithPrefix(%q): %q is reserved", prefix, lockscript.Reserved)
	}
	return nil
}

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

func emptyTag(s string) bool {
	_, rest, found := strings.Cut(s, "{")
	return found && strings.HasPrefix(rest, "}")
}
