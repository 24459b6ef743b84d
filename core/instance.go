package core

import (
	"context"

	"github.com/holdfast-go/holdfast/core/internal/clientinfo"
	"github.com/holdfast-go/holdfast/core/internal/lockscript"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// WithInstance sets what other clients see of this one as the holder of a lock: in [Client.Inspect], errors, hooks and the
// log. The text is written to Redis in the background, after the first grant or wait, and once an hour while the client
// has leases or waiters. A lock costs nothing for it. Others may see no instance in the first seconds.
//
// Each client that may use the locks can read the text: put no secret and no user's data into it. Up to 128 bytes of
// printable ASCII. With "" nothing is written. Defaults to the name of the host and the process ID, as in "web-1:4711".
func WithInstance(text string) Option {
	return clientOption(func(c *clientConfig) {
		if err := clientinfo.Check(text); err != nil {
			c.lock.refuse(invalidOption("WithInstance: %v", err))
		}
		c.instance = text
	})
}

// cannotAnnounce warns, once, that others do not see the instance of this client.
func (e *engine) cannotAnnounce(err error) {
	if !transport.Transient(err) && !e.operations.IsClosed() {
		e.warnOnce(&e.unannounced, "the instance of this client could not be written: others do not see it", "error", err)
	}
}

// ownerForLog returns an owner for the log. Why a digest of one that WithOwner has named: it may carry a user's data.
func ownerForLog(owner string) string {
	if _, ok := lockscript.ClientOf(owner); ok || owner == "" {
		return owner
	}
	return digest(owner)
}

// addInstances sets the instances of all holders and waiters in the states of a lock.
func (e *engine) addInstances(ctx context.Context, states ...*Info) {
	ctx, cancel := context.WithTimeout(ctx, transport.FirstAnswerTimeout)
	defer cancel()
	var owners []string
	for _, info := range states {
		for _, h := range info.Holders {
			owners = append(owners, h.Owner)
		}
		for _, w := range info.Queue {
			owners = append(owners, w.Owner)
		}
	}
	e.directory.Find(ctx, owners)
	for _, info := range states {
		for i := range info.Holders {
			info.Holders[i].Instance = e.directory.Instance(info.Holders[i].Owner)
		}
		for i := range info.Queue {
			info.Queue[i].Instance = e.directory.Instance(info.Queue[i].Owner)
		}
	}
}
