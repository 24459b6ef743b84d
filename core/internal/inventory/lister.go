package inventory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// ErrCursor is wrapped by the error for a text that is no cursor.
var ErrCursor = errors.New("no cursor of this version")

// maxRead bounds how many records one call reads while it looks for those of a state.
const maxRead = 1000

// maxHolds bounds how many holds, and places in a queue, are read of one lock: while a server reads them, it does nothing else.
const maxHolds = 64

// Lister lists the locks and records of one client.
type Lister struct {
	Instance *script.Instance
	Prefix   string // of the client
}

// Lock is one lock of a list.
type Lock struct {
	Name string
	script.Summary
}

// Record is one record of a list.
type Record struct {
	Key string
	script.Record
	Size int // bytes of the value, which is not read
}

// Locks returns about want locks that are held and whose names begin with begin, by name, and the cursor of the next page. That is
// "" at the end. skipped counts hashes that are no locks.
func (l *Lister) Locks(ctx context.Context, begin, cursor string, want int) (locks []Lock, skipped int, next string, err error) {
	w := walk{Exec: l.Instance.Exec, Pattern: lockPattern(l.Prefix + begin), NameOf: func(key string) (string, bool) {
		return script.NameOf(l.Prefix, key)
	}}
	names, next, err := w.page(ctx, cursor, want)
	if err != nil {
		return nil, 0, "", err
	}
	found := make([]Lock, len(names))
	err = l.readAll(names, func(i int, k script.Keys) (err error) {
		found[i].Name = names[i]
		found[i].Summary, err = l.Instance.Summary(ctx, k, maxHolds)
		return err
	})
	for _, lock := range found {
		switch {
		case lock.NoLock:
			skipped++
		case lock.Mode != "": // otherwise it was released meanwhile
			locks = append(locks, lock)
		}
	}
	return locks, skipped, next, err
}

// Records returns about want records whose keys begin with begin, by key, and the cursor of the next page. That is "" at the end.
// If wanted is not nil, it returns only records for which wanted returns true. Then it reads pages until it has as many as want,
// but no more than maxRead records, and none after a page for which the walk has used all its SCANs.
func (l *Lister) Records(
	ctx context.Context, begin, cursor string, want int, wanted func(script.Record) bool,
) (records []Record, next string, err error) {
	for read := 0; ; cursor = next {
		page, n, end, err := l.recordPage(ctx, begin, cursor, want, wanted)
		if err != nil {
			return nil, "", err
		}
		records, next = append(records, page...), end
		if read += n; next == "" || wanted == nil || len(records) >= want || n < want || read+want > maxRead {
			slices.SortFunc(records, func(a, b Record) int { return strings.Compare(a.Key, b.Key) })
			return slices.CompactFunc(records, func(a, b Record) bool { return a.Key == b.Key }), next, nil
		}
	}
}

// recordPage returns one page of the walk, and how many records it has read for it.
func (l *Lister) recordPage(
	ctx context.Context, begin, cursor string, want int, wanted func(script.Record) bool,
) (records []Record, read int, next string, err error) {
	w := walk{Exec: l.Instance.Exec, Pattern: oncePattern(l.Prefix + begin), NameOf: func(key string) (string, bool) {
		name, ok := script.NameOfOnce(l.Prefix, key)
		return name, ok && strings.HasPrefix(name, begin)
	}}
	names, next, err := w.page(ctx, cursor, want)
	if err != nil {
		return nil, 0, "", err
	}
	found := make([]Record, len(names))
	once := script.NewOnce(l.Instance)
	err = l.readAll(names, func(i int, k script.Keys) (err error) {
		found[i].Key = names[i]
		found[i].Record, found[i].Size, err = once.Summary(ctx, k.Once())
		return err
	})
	for _, r := range found {
		if r.State != "" && (wanted == nil || wanted(r.Record)) {
			records = append(records, r)
		}
	}
	return records, len(names), next, err
}

// Find returns the names of locks, or of records, whose keys match, and the cursor of the next page. It reads only keys.
func (l *Lister) Find(ctx context.Context, records bool, match func(key string) bool, cursor string) (names []string, next string, err error) {
	pattern, nameOf := lockPattern(l.Prefix), script.NameOf
	if records {
		pattern, nameOf = oncePattern(l.Prefix), script.NameOfOnce
	}
	w := walk{Exec: l.Instance.Exec, Pattern: pattern, NameOf: func(key string) (string, bool) {
		name, ok := nameOf(l.Prefix, key)
		return name, ok && match(key)
	}}
	return w.page(ctx, cursor, maxCount)
}

// readAll calls read for all names, side by side: the executor makes batches of the commands. It returns the first error.
func (l *Lister) readAll(names []string, read func(i int, k script.Keys) error) error {
	errs := make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() {
			k := script.NewKeys(l.Prefix, name)
			if err := read(i, k); err != nil && !transport.WrongType(err) { // another key has taken its place meanwhile
				errs[i] = fmt.Errorf("%q: %w", k.Lock, err)
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
