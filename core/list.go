package core

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/inventory"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// Bounds of lists.
const (
	defaultListed = 100
	maxListed     = 1000
	// maxListedHolders bounds the holders of one lock that an [Entry] has.
	maxListedHolders = 3
)

// Entry is one lock of a list, at one instant. [Client.Inspect] returns more details.
type Entry struct {
	// Name of the lock, without prefix.
	Name string
	// Mode is how the lock is held: [ModeElection] if a leader has proclaimed itself there. It is never empty.
	Mode Mode
	// Foreign is true if a client of Redisson holds the lock. Then a holder has neither a token nor a time of its grant.
	Foreign bool
	// Holders are some of the holders: at most three, and of shared holds those that last longest. There are none while a lock
	// stays taken only for its [WithMinHold].
	Holders []Holder
	// Holds counts all holders: 1 for an exclusive lock, and the shares and permits of any other, see [Info.Shares].
	Holds int
	// TTL is as in [Info.TTL].
	TTL time.Duration
	// Places counts the places in the queue, see [Info.Places]. It is -1 if they cannot be read while the slot of a Cluster
	// moves. Then the shared holds are missing too.
	Places int
	// Waiters counts the clients that listen for a release, see [Info.Waiters].
	Waiters int
	// Value is what the leader has proclaimed, see [WithValue].
	Value string
}

// RecordEntry is one record of a list. Value and Fingerprint are always nil: [Once.Peek] reads them.
type RecordEntry struct {
	Record
	// Size is the number of bytes of the value.
	Size int
}

// Locks returns the locks that are held and whose names begin with prefix, for operators. It ends after the first
// error. It reads them in pages, and the entries of a page are sorted by name. No command of it keeps the server busy
// for a long time. The walk ends when ctx does: give it a deadline where the server may not be what it seems, because a
// server decides when a walk is at its end.
//
// The list is no snapshot. A lock that is held during the whole walk is in it, perhaps twice. One that is taken or released
// meanwhile may be in it or not. That also holds for a Cluster whose slots move, and after a restart or a failover: then the scan
// of that server begins again. Without the right to INFO the client cannot notice that, and a lock may be missing. So may one
// whose slot is on its way from one master to another during the whole walk.
//
// A walk costs Redis a look at each key of its database, not only at the keys of locks. The user needs the right to SCAN, see
// docs/keys-and-rights.md, and otherwise gets [ErrPermission]. [Client.Held] lists what this process holds, and asks no server.
//
// Locks finds only locks under the prefix of this client.
func (c *Client) Locks(ctx context.Context, prefix string) iter.Seq2[Entry, error] {
	return pages(ctx, func(p *seal.Page) (entries []Entry, err error) {
		err = c.listing(ctx, "list locks", p.Limit, func(l *inventory.Lister, want int) error {
			found, skipped, next, err := l.Locks(ctx, prefix, p.Cursor, want)
			if err != nil {
				return err
			}
			p.Next, p.Skipped = next, skipped
			infos := make([]Info, len(found))
			for i, lock := range found {
				infos[i] = newInfo(lock.State)
				infos[i].Holders, infos[i].Queue = infos[i].Holders[:min(len(infos[i].Holders), maxListedHolders)], nil
			}
			c.addInstances(ctx, infos...)
			for i, lock := range found {
				info := infos[i]
				entries = append(entries, Entry{
					Name: lock.Name, Mode: info.Mode, Foreign: lock.Foreign, Holders: info.Holders, Holds: lock.Holds(),
					TTL: info.TTL, Places: info.Places, Waiters: info.Waiters, Value: info.Value,
				})
			}
			return nil
		})
		return entries, err
	})
}

// Records is [Client.Locks] for the records of [Once] whose keys begin with prefix, without their values. The user needs the
// rights to SCAN and HSTRLEN. Records without state are left out.
func (c *Client) Records(ctx context.Context, prefix string) iter.Seq2[RecordEntry, error] {
	return pages(ctx, func(p *seal.Page) (records []RecordEntry, err error) {
		wanted, err := inStates(p.States)
		if err != nil {
			return nil, err
		}
		err = c.listing(ctx, "list records", p.Limit, func(l *inventory.Lister, want int) error {
			found, next, err := l.Records(ctx, prefix, p.Cursor, want, wanted)
			if err != nil {
				return err
			}
			p.Next = next
			for _, r := range found {
				records = append(records, RecordEntry{newRecord(r.Key, r.Record), r.Size})
			}
			return nil
		})
		return records, err
	})
}

// inStates returns a function that returns true for records in one of the states, nil if there are none: then all records
// are wanted.
func inStates(states []string) (func(script.Record) bool, error) {
	for _, s := range states {
		switch State(s) {
		case StateRunning, StateAbandoned, StateUnknown, StateCompleted:
		default:
			return nil, invalidOption("list records: state %q: use running, abandoned, unknown or completed", s)
		}
	}
	if len(states) == 0 {
		return nil, nil
	}
	return func(r script.Record) bool { return slices.Contains(states, string(stateOf(r.State))) }, nil
}

// listing runs read, which lists about as many as want, and makes its error one of the API.
func (c *Client) listing(ctx context.Context, what string, limit int, read func(l *inventory.Lister, want int) error) error {
	if limit < 0 || limit > maxListed {
		return invalidOption("%s: limit of %d: 0 to %d is allowed", what, limit, maxListed)
	}
	if !c.operations.Start() {
		return ErrClosed
	}
	defer c.operations.Finish()
	err := read(&inventory.Lister{Instance: c.server.Instance, Prefix: c.prefix}, cmp.Or(limit, defaultListed))
	switch {
	case err == nil:
		return nil
	case errors.Is(err, inventory.ErrCursor):
		return invalidOption("%s: %v", what, err)
	}
	return errorf("holdfast: %s: %w", what, failure(ctx, c.prefix, err))
}

// pages iterates over all pages, or over the one for which ctx asks. It ends after the first error.
func pages[E any](ctx context.Context, read func(*seal.Page) ([]E, error)) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		one := seal.PageFrom(ctx)
		p := cmp.Or(one, &seal.Page{Limit: maxListed})
		for {
			page, err := read(p)
			if err != nil {
				var none E
				yield(none, err)
				return
			}
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
			}
			if one != nil || p.Next == "" {
				return
			}
			p.Cursor = p.Next
		}
	}
}
