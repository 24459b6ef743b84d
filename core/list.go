package core

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/catalog"
)

// Bounds of lists.
const (
	defaultListed = 100
	maxListed     = 1000
	// maxListedHolders bounds the holders of one lock that an [Entry] has.
	maxListedHolders = 3
)

// Page is a part of the list of all locks that are held.
type Page struct {
	// Locks are sorted by name. There may be none, even if there are more pages.
	Locks []Entry
	// Next is the cursor of the next page. It is empty if this is the last one.
	Next string
	// Skipped counts the hashes whose keys could be those of locks, and which are no locks.
	Skipped int
}

// Entry is one lock of a list, at one instant. [Client.Inspect] says more of it.
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

// RecordPage is a part of the list of all records of [Once].
type RecordPage struct {
	// Records are sorted by key. There may be none, even if there are more pages.
	Records []RecordEntry
	// Next is the cursor of the next page. It is empty if this is the last one.
	Next string
}

// RecordEntry is one record of a list. Value and Fingerprint are always nil: [Once.Peek] reads them.
type RecordEntry struct {
	Record
	// Size is the number of bytes of the value.
	Size int
}

// List returns a page of the locks that are held and whose names begin with prefix, for operators. An empty cursor is the first
// page, and [Page.Next] leads to the next one. limit is about how many locks a page has, 1 to 1,000; 0 is 100. A page may have
// more or fewer, or none: a call looks at a bounded number of keys, and no command of it keeps the server busy for long.
//
// The pages of one walk are no snapshot. A lock that is held during the whole walk is in it, perhaps twice. One that is taken
// or released meanwhile may be in it or not. That also holds for a Cluster whose slots move, and after a restart or a failover:
// then the scan of that server begins again. Without the right to INFO the client cannot notice that, and a lock may be missing. So
// may one whose slot is on its way from one master to another during the whole walk.
//
// A walk costs Redis a look at each key of its database, not only those of locks. The user needs the right to SCAN, see
// docs/redis.md, and otherwise gets [ErrPermission]. [Client.Held] lists what this process holds, and asks no server.
//
// List finds only locks under the prefix of this client. It returns [ErrInvalidOption] for a cursor that no List has returned.
// With an error, the same cursor may be used again.
func (c *Client) List(ctx context.Context, prefix, cursor string, limit int) (page Page, err error) {
	err = c.listing(ctx, "list locks", limit, func(l *catalog.Lister, want int) error {
		found, skipped, next, err := l.Locks(ctx, prefix, cursor, want)
		if err != nil {
			return err
		}
		page = Page{Next: next, Skipped: skipped}
		for _, lock := range found {
			page.Locks = append(page.Locks, newEntry(lock))
		}
		c.addEntryInstances(ctx, page.Locks)
		return nil
	})
	return page, err
}

// newEntry returns the entry of a lock.
func newEntry(s catalog.Lock) Entry {
	info := newInfo(s.State)
	e := Entry{
		Name: s.Name, Mode: info.Mode, Foreign: s.Foreign, Holders: info.Holders, Holds: s.Holds,
		TTL: info.TTL, Places: info.Places, Waiters: info.Waiters, Value: info.Value,
	}
	if len(e.Holders) > maxListedHolders {
		e.Holders = e.Holders[:maxListedHolders]
	}
	return e
}

// Locks is [Client.List] as an iterator over all pages. It ends after the first error.
func (c *Client) Locks(ctx context.Context, prefix string) iter.Seq2[Entry, error] {
	return pages(func(cursor string) ([]Entry, string, error) {
		page, err := c.List(ctx, prefix, cursor, maxListed)
		return page.Locks, page.Next, err
	})
}

// ListRecords is [Client.List] for the records of [Once] whose keys begin with prefix. The user needs the rights to SCAN and
// HSTRLEN. Records without state are left out. With states, only records of those states are listed: a
// call then reads up to 1,000 records, without their values, to find as many as limit.
func (c *Client) ListRecords(ctx context.Context, prefix, cursor string, limit int, states ...State) (page RecordPage, err error) {
	wanted, err := inStates(states)
	if err != nil {
		return page, err
	}
	err = c.listing(ctx, "list records", limit, func(l *catalog.Lister, want int) error {
		found, next, err := l.Records(ctx, prefix, cursor, want, wanted)
		if err != nil {
			return err
		}
		page.Next = next
		for _, r := range found {
			page.Records = append(page.Records, RecordEntry{newRecord(r.Key, r.Record), r.Size})
		}
		return nil
	})
	return page, err
}

// AllRecords is [Client.ListRecords] as an iterator over all pages. It ends after the first error.
func (c *Client) AllRecords(ctx context.Context, prefix string, states ...State) iter.Seq2[RecordEntry, error] {
	return pages(func(cursor string) ([]RecordEntry, string, error) {
		page, err := c.ListRecords(ctx, prefix, cursor, maxListed, states...)
		return page.Records, page.Next, err
	})
}

// listing runs read, which lists about as many as want, and makes its error one of the API.
func (c *Client) listing(ctx context.Context, what string, limit int, read func(l *catalog.Lister, want int) error) error {
	if limit < 0 || limit > maxListed {
		return invalidOption("%s: limit of %d: 0 to %d is allowed", what, limit, maxListed)
	}
	if !c.operations.Start() {
		return ErrClosed
	}
	defer c.operations.Finish()
	err := read(&catalog.Lister{Instance: c.server.Instance, Prefix: c.prefix}, cmp.Or(limit, defaultListed))
	switch {
	case err == nil:
		return nil
	case errors.Is(err, catalog.ErrCursor):
		return invalidOption("%s: %v", what, err)
	}
	return errorf("holdfast: %s: %w", what, failure(ctx, c.prefix, err))
}

// pages iterates over all pages. It ends after the first error.
func pages[E any](read func(cursor string) (page []E, next string, err error)) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		for cursor, more := "", true; more; more = cursor != "" {
			page, next, err := read(cursor)
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
			cursor = next
		}
	}
}
