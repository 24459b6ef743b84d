package core

import (
	"fmt"
	"strings"
)

// maxName bounds lock names, in bytes.
const maxName = 512

// reserved begins the keys that holdfast keeps beside the locks.
const reserved = "holdfast:"

// keysOf returns the keys of a name. It refuses what Redis would take but would not keep apart or together. Braces are
// the point: in a Cluster the text in the first pair decides the slot, and everything about one lock must share a slot.
// Source: Redis Cluster specification, hash tags.
//
// All else is taken as it is, newlines and invalid UTF-8 too: Redis counts bytes, and names are no part of any script.
func keysOf(prefix, name string) (keys, error) {
	switch { // before anything is made of a name that has megabytes
	case name == "":
		return keys{}, fmt.Errorf("%w: empty", ErrInvalidName)
	case len(name) > maxName:
		return keys{}, fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrInvalidName, len(name), maxName)
	}
	k := newKeys(prefix, name)
	switch {
	case strings.ContainsRune(name, 0):
		return keys{}, fmt.Errorf("%w: %q contains a NUL byte", ErrInvalidName, name)
	case !balanced(k.lock):
		return keys{}, fmt.Errorf("%w: braces of %q are not balanced", ErrInvalidName, k.lock)
	case emptyTag(k.lock):
		return keys{}, fmt.Errorf("%w: the first pair of braces in %q is empty", ErrInvalidName, k.lock)
	case strings.HasPrefix(k.lock, reserved):
		return keys{}, fmt.Errorf("%w: %q begins with %q, which is reserved", ErrInvalidName, k.lock, reserved)
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
	case strings.HasPrefix(prefix, reserved):
		return invalidOption("WithPrefix(%q): %q is reserved", prefix, reserved)
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

// keys are the places in Redis that belong to one lock, all in one Cluster slot.
type keys struct {
	lock           string // Redisson's RLock hash, at the bare key
	channel        string // Redisson's, where releases are announced
	token          string
	waitingClients string // the clients that wait for a Mutex, see lua/acquire.lua
	tag            string // the lock's key in a form that hashes like it
}

// newKeys derives the auxiliary keys. A key without braces becomes the tag as a whole; one with braces brings
// its own tag. The separator tells the two apart, so "a" and "{a}" do not share them.
func newKeys(prefix, name string) keys {
	open, shut, colon := ":{", "}", ":{"
	if strings.Contains(prefix, "{") || strings.Contains(name, "{") {
		open, shut, colon = "=", "", ":"
	}
	// All of them are parts of one text, so that they cost one allocation.
	const channel, token, waitingClients = "redisson_lock__channel", reserved + "token", reserved + "waiting_clients"
	text := channel + colon + prefix + name + shut + token + open + prefix + name + shut +
		waitingClients + open + prefix + name + shut
	lock, key := len(channel)+len(colon), len(prefix)+len(name)
	tokens := lock + key + len(shut)
	clients := tokens + len(token) + len(open) + key + len(shut)
	return keys{
		lock: text[lock : lock+key], channel: text[:tokens], token: text[tokens:clients],
		waitingClients: text[clients:], tag: text[clients+len(waitingClients):],
	}
}

// deployment is where the id of the deployment in which the lock lies is kept, see location.go.
func (k keys) deployment() string { return reserved + "deployment" + k.tag }

// released begins the keys where the ends of holds are remembered.
const released = reserved + "released"

// released is where a hold's end is remembered.
func (k keys) released(hold string) string { return released + k.tag + ":" + hold }

// Where the strategies with a queue keep it, and the expiries of their shares; see lua/queue_common.lua.
func (k keys) shareExpiries() string  { return reserved + "share_expiries" + k.tag }
func (k keys) exclusiveQueue() string { return reserved + "exclusive_queue" + k.tag }
func (k keys) sharedQueue() string    { return reserved + "shared_queue" + k.tag }
func (k keys) waiters() string        { return reserved + "waiters" + k.tag }

// once returns the keys of the record of that name. It lies beside the lock and draws from the same fencing tokens.
// They share the channel, whose messages say no more than that it is time to look.
func (k keys) once() keys {
	k.lock = reserved + "once" + k.tag
	return k
}

// groupPrefix begins the keys of groups.
const groupPrefix = reserved + "group"

// groupKey returns where the records of a client are listed that have the same hash tag, false if a key has no braces.
func groupKey(prefix, key string) (string, bool) {
	_, rest, found := strings.Cut(prefix+key, "{")
	tag, _, closed := strings.Cut(rest, "}")
	return groupPrefix + ":{" + tag + "}:" + prefix, found && closed
}
