package inventory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

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
	found, err := ReadAll(ctx, names, func(name string) (Lock, error) {
		k := script.NewKeys(l.Prefix, name)
		summary, err := l.Instance.Summary(ctx, k, maxHolds)
		return Lock{Name: name, Summary: summary}, readError(k, err)
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
	once := script.NewOnce(l.Instance)
	found, err := ReadAll(ctx, names, func(name string) (Record, error) {
		k := script.NewKeys(l.Prefix, name)
		record, size, err := once.Summary(ctx, k.Once())
		return Record{Key: name, Record: record, Size: size}, readError(k, err)
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

// mostReaders bounds how many records of a list are read at the same time. The executor makes batches of their commands.
const mostReaders = 256

// ReadAll calls read for all names, some side by side, until one fails or ctx ends. Another program of this Redis can add any number
// of members to a group, and a server can reply any number of keys to SCAN, so their number must not be that of goroutines.
func ReadAll[R any](ctx context.Context, names []string, read func(name string) (R, error)) ([]R, error) {
	records, errs := make([]R, len(names)), make([]error, len(names))
	var next atomic.Int64
	var failed atomic.Bool
	var all sync.WaitGroup
	for range min(mostReaders, len(names)) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(names) && !failed.Load() && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if records[i], errs[i] = read(names[i]); errs[i] != nil {
					failed.Store(true)
				}
			}
		})
	}
	all.Wait()
	return records, cmp.Or(append(errs, ctx.Err())...)
}

// readError returns the error of a key that was read, nil if another key has taken its place meanwhile.
func readError(k script.Keys, err error) error {
	if err == nil || transport.WrongType(err) {
		return nil
	}
	return fmt.Errorf("%q: %w", k.Lock, err)
}
