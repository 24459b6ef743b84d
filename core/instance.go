package core

import (
	"context"
	"maps"

	"github.com/holdfast-go/holdfast/core/internal/inventory"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// WithInstance sets the name under which other clients see this one as the holder of a lock: in [Client.Inspect],
// errors, hooks and the log. The text is written to Redis in the background, after the first grant or wait, and again
// while the client has leases or waiters: at intervals that double from a minute to an hour. A lock costs nothing for
// it. Others may see no instance in the first seconds. After [Client.Close], Redis keeps the text for the longest TTL.
// A process that is killed leaves it for about twice as long as it has lived, two hours at most, and longer by that
// TTL.
//
// Each record of [Once] has the text too, see [Record], for as long as the record is kept.
//
// Each client that may use the locks can read the text: put no secret and no user's data into it. Up to 128 bytes of
// printable ASCII. With "" nothing is written. Defaults to the name of the host and the process ID, as in "web-1:4711".
func WithInstance(text string) Option {
	return clientOption(func(c *clientConfig) {
		if err := inventory.CheckInstance(text); err != nil {
			c.lock.refuse(invalidOption("WithInstance: %v", err))
		}
		c.instance = text
	})
}

// cannotAnnounce warns once that other clients cannot see this client's instance.
func (e *engine) cannotAnnounce(err error) {
	if !transport.Transient(err) && !e.operations.IsClosed() {
		e.warnOnce("the entry of this client's instance could not be written: other clients do not see it", "error", err)
	}
}

// ownerForLog returns an owner for the log: a digest if WithOwner has named it, because it may carry a user's data.
func ownerForLog(owner string) string {
	if _, ok := script.ClientOf(owner); ok || owner == "" {
		return owner
	}
	return digest(owner)
}

// addInstances sets the instances of all holders and waiters in the states of locks. For a bounded time it asks for the clients of
// owners that are not known yet.
func (e *engine) addInstances(ctx context.Context, states ...Info) {
	owners := make(map[*string]string) // by where the instance of the owner is wanted
	for _, info := range states {
		for i := range info.Holders {
			owners[&info.Holders[i].Instance] = info.Holders[i].Owner
		}
		for i := range info.Queue {
			owners[&info.Queue[i].Instance] = info.Queue[i].Owner
		}
	}
	ctx, cancel := context.WithTimeout(ctx, transport.FirstAnswerTimeout)
	defer cancel()
	e.directory.Find(ctx, maps.Values(owners))
	for instance, owner := range owners {
		*instance = e.directory.Instance(owner)
	}
}
