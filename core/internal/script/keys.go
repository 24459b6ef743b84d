package script

import (
	"strings"

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
// tokens and the channel. Why they may share the channel: a message only says that it is time to ask Redis.
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
