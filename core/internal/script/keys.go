package script

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// Reserved is the prefix of all keys that holdfast keeps beside the locks. Lock names must not begin with it.
const Reserved = "holdfast:"

// Keys are the keys and the channel of one lock. All keys are in one slot of a Cluster.
type Keys struct {
	Lock           string // the hash of the lock, at the same key as Redisson's RLock
	Channel        string // the same as Redisson's, where releases are announced
	WaitingClients string // the clients that wait for a Mutex, see lua/lock/acquire.lua
	tag            string // the end of all other keys; it has the same hash tag as the lock
}

// NewKeys returns the keys of the lock at prefix+name. If that has no braces, the other keys have it as their hash tag.
// Otherwise they contain it unchanged, so it brings its own tag. The separator differs, so "a" and "{a}" share no key.
func NewKeys(prefix, name string) Keys {
	open, shut, colon := ":{", "}", ":{"
	if strings.Contains(prefix, "{") || strings.Contains(name, "{") {
		open, shut, colon = "=", "", ":"
	}
	// All keys are parts of one string, so that they cost one allocation.
	const channel, waitingClients = "redisson_lock__channel", Reserved + "waiting_clients"
	text := channel + colon + prefix + name + shut + waitingClients + open + prefix + name + shut
	lock, key := len(channel)+len(colon), len(prefix)+len(name)
	clients := lock + key + len(shut)
	return Keys{
		Lock: text[lock : lock+key], Channel: text[:clients],
		WaitingClients: text[clients:], tag: text[clients+len(waitingClients):],
	}
}

// Deployment returns the key of the ID of the deployment that has the lock, see Strategy.DeploymentID. All locks of a slot
// share it, also without a Cluster, so that the number of these keys is bounded.
func (k Keys) Deployment() string {
	slotKey, _ := slotTokenKeys()[transport.Slot(k.Lock)].(string)
	tag := slotKey // of tokenKey, which has no braces
	if _, number, found := strings.Cut(slotKey, "{"); found {
		tag = strings.TrimSuffix(number, "}")
	}
	return Reserved + "deployment:{" + tag + "}"
}

// released is the prefix of the keys that bar requests of holds.
const released = Reserved + "released"

// Released returns the key that bars requests of the hold with that ID, see lua/lock/bar.lua.
func (k Keys) Released(hold string) string { return released + k.tag + ":" + hold }

// Forced returns the key of the mark that ForceUnlock leaves, see lua/lock/force.lua.
func (k Keys) Forced() string { return Reserved + "forced" + k.tag }

// The keys of a lock with a queue, see lua/lock/queue_common.lua.

// ShareExpiries returns the key of the sorted set of the expiries of shares.
func (k Keys) ShareExpiries() string { return Reserved + "share_expiries" + k.tag }

// ExclusiveQueue returns the key of the queue of waiters that want the lock for themselves.
func (k Keys) ExclusiveQueue() string { return Reserved + "exclusive_queue" + k.tag }

// SharedQueue returns the key of the queue of readers.
func (k Keys) SharedQueue() string { return Reserved + "shared_queue" + k.tag }

// Slots returns the key of the sorted set of the permits of a semaphore, see lua/lock/permits.lua.
func (k Keys) Slots() string { return Reserved + "slots" + k.tag }

// Waiters returns the key of the hash of all waiters in both queues.
func (k Keys) Waiters() string { return Reserved + "waiters" + k.tag }

// Once returns the keys of the record of that name: Lock is the key of the record. Lock and record of a name share the fencing
// tokens and the channel. They may share the channel because a message only says that it is time to ask Redis.
func (k Keys) Once() Keys {
	k.Lock = Reserved + "once" + k.tag
	return k
}

// Of returns the key of a kind that an adapter keeps beside the lock of that name.
func (k Keys) Of(kind string) string { return Reserved + kind + k.tag }

// EndMarks returns the key of the marks of ends of a Once, see lua/once/marks.lua.
func (k Keys) EndMarks() string { return Reserved + "ended" + k.tag }

// ClientKey returns the key of what the client with that UUID says of itself, see package inventory. Each client has a slot
// of its own, because no script needs that key and a lock.
func ClientKey(client string) string { return Reserved + "client:{" + client + "}" }

// groupPrefix is the prefix of the keys of groups.
const groupPrefix = Reserved + "group"

// GroupKey returns the key of the group of a record: all records with that prefix whose keys have the same hash tag. It returns
// false if the key has no braces, and so is in no group.
func GroupKey(prefix, key string) (string, bool) {
	_, rest, found := strings.Cut(prefix+key, "{")
	tag, _, closed := strings.Cut(rest, "}")
	return groupPrefix + ":{" + tag + "}:" + prefix, found && closed
}

// maxName bounds names of locks and prefixes, in bytes.
const maxName = 512

// KeysOf returns the keys of a name, or why no lock can have the name. It refuses what Redis would take but would not
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

// NameOf returns the name of the lock at a key. It returns false if the key is not of a lock with this prefix.
func NameOf(prefix, key string) (name string, ok bool) {
	name, ok = strings.CutPrefix(key, prefix)
	if ok {
		_, err := KeysOf(prefix, name)
		ok = err == nil
	}
	return name, ok
}

// NameOfOnce returns the name of the record at a key, see Keys.Once. It returns false if the key is not of a record with
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

// tokenKey is the key of the last fencing token that a server has granted. All names share it, so a name leaves no key behind.
//
// A script may use only keys of one slot of a Cluster. So a Cluster has one such key for each slot that is in use. Not one for
// each name, because each would have to outlive its lock, and a lock may be one of millions.
//
// To raise the token of one name raises the tokens of all names that share the key. That does no harm: tokens need to grow, and
// need not be consecutive.
const tokenKey = Reserved + "token"

// slotTokenKeys returns the keys for all slots, by slot, as arguments of scripts. The key of the slot of tokenKey is tokenKey
// itself, because a client that does not know yet that its server is part of a Cluster uses tokenKey in that slot without an
// error.
var slotTokenKeys = sync.OnceValue(func() *[16384]any {
	var keys [16384]any
	keys[transport.Slot(tokenKey)] = tokenKey
	for n, missing := 0, len(keys)-1; missing > 0; n++ {
		key := tokenKey + ":{" + strconv.Itoa(n) + "}"
		if slot := transport.Slot(key); keys[slot] == nil {
			keys[slot] = key
			missing--
		}
	}
	return &keys
})

// SlotKey returns a key in that slot, to find its master.
func SlotKey(slot int) string {
	key, _ := slotTokenKeys()[slot].(string)
	return key
}

// tokenKeyArg is tokenKey as an argument of scripts.
var tokenKeyArg any = tokenKey

// TokenKeys decides which key has the last token for a lock. The zero value uses one key for all.
type TokenKeys struct{ bySlot atomic.Bool }

// UseSlots makes TokenKeys use one key for each slot.
func (t *TokenKeys) UseSlots() { t.bySlot.Store(true) }

// arg returns the key for the lock at that key, as an argument of scripts.
func (t *TokenKeys) arg(lock string) any {
	if !t.bySlot.Load() {
		return tokenKeyArg
	}
	return slotTokenKeys()[transport.Slot(lock)]
}

// Of returns the key for the lock at that key.
func (t *TokenKeys) Of(lock string) string {
	key, _ := t.arg(lock).(string)
	return key
}

// learnSlots takes note of the error of a command whose token key was used. It returns true if the server wants all keys of a
// script in one slot, and used is not in the slot of the lock. Then the caller must send the command again.
//
// The type of the client alone does not decide, because a proxy may show a Cluster as one server.
func (t *TokenKeys) learnSlots(err error, lock string, used any) bool {
	if err == nil || !transport.CrossSlot(err) {
		return false
	}
	t.bySlot.Store(true)
	return t.arg(lock) != used
}
