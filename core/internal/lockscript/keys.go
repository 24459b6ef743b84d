package lockscript

import "strings"

// Reserved begins the keys that holdfast keeps beside the locks.
const Reserved = "holdfast:"

// Keys are the places in Redis that belong to one lock, all in one Cluster slot.
type Keys struct {
	Lock           string // Redisson's RLock hash, at the bare key
	Channel        string // Redisson's, where releases are announced
	Token          string
	WaitingClients string // the clients that wait for a Mutex, see lua/acquire.lua
	tag            string // the lock's key in a form that hashes like it
}

// NewKeys derives the auxiliary keys. A key without braces becomes the tag as a whole; one with braces brings
// its own tag. The separator tells the two apart, so "a" and "{a}" do not share them.
func NewKeys(prefix, name string) Keys {
	open, shut, colon := ":{", "}", ":{"
	if strings.Contains(prefix, "{") || strings.Contains(name, "{") {
		open, shut, colon = "=", "", ":"
	}
	// All of them are parts of one text, so that they cost one allocation.
	const channel, token, waitingClients = "redisson_lock__channel", Reserved + "token", Reserved + "waiting_clients"
	text := channel + colon + prefix + name + shut + token + open + prefix + name + shut +
		waitingClients + open + prefix + name + shut
	lock, key := len(channel)+len(colon), len(prefix)+len(name)
	tokens := lock + key + len(shut)
	clients := tokens + len(token) + len(open) + key + len(shut)
	return Keys{
		Lock: text[lock : lock+key], Channel: text[:tokens], Token: text[tokens:clients],
		WaitingClients: text[clients:], tag: text[clients+len(waitingClients):],
	}
}

// Deployment is where the id of the deployment in which the lock lies is kept, see location.go.
func (k Keys) Deployment() string { return Reserved + "deployment" + k.tag }

// Released begins the keys where the ends of holds are remembered.
const released = Reserved + "released"

// Released is where a hold's end is remembered.
func (k Keys) Released(hold string) string { return released + k.tag + ":" + hold }

// The keys of a lock with a queue, see lua/queue_common.lua.

// ShareExpiries returns the sorted set of the expiries of shares.
func (k Keys) ShareExpiries() string { return Reserved + "share_expiries" + k.tag }

// ExclusiveQueue returns the queue of waiters that want the lock for themselves.
func (k Keys) ExclusiveQueue() string { return Reserved + "exclusive_queue" + k.tag }

// SharedQueue returns the queue of readers.
func (k Keys) SharedQueue() string { return Reserved + "shared_queue" + k.tag }

// Waiters returns the hash of all waiters in both queues.
func (k Keys) Waiters() string { return Reserved + "waiters" + k.tag }

// Once returns the keys of the record of that name. It lies beside the lock and draws from the same fencing tokens.
// They share the channel, whose messages say no more than that it is time to look.
func (k Keys) Once() Keys {
	k.Lock = Reserved + "once" + k.tag
	return k
}

// GroupPrefix begins the keys of groups.
const GroupPrefix = Reserved + "group"

// GroupKey returns where the records of a client are listed that have the same hash tag, false if a key has no braces.
func GroupKey(prefix, key string) (string, bool) {
	_, rest, found := strings.Cut(prefix+key, "{")
	tag, _, closed := strings.Cut(rest, "}")
	return GroupPrefix + ":{" + tag + "}:" + prefix, found && closed
}
