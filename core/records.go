package core

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast/core/internal/lockscript"
)

// Records reads the records of a group, the latest first: those of [Once] with [WithGroup], [WithQuota] or
// [WithQuotaBytes] whose keys have the same text in their first pair of braces as key. It is for operators: the answer
// may be outdated when it arrives, and each record is read by itself. Records without state are left out.
func (c *Client) Records(ctx context.Context, key string) ([]Record, error) {
	if _, err := keysOf(c.prefix, key); err != nil {
		return nil, err
	}
	group, ok := lockscript.GroupKey(c.prefix, key)
	if !ok {
		return nil, fmt.Errorf("%w: %q has no braces to name a group", ErrInvalidName, key)
	}
	names, err := c.listRecords(ctx, key, group)
	if err != nil {
		return nil, err
	}
	slices.Sort(names) // one that was recorded meanwhile lets others be listed twice
	records, err := c.peekAll(ctx, slices.Compact(names))
	if err != nil {
		return nil, err
	}
	records = slices.DeleteFunc(records, func(r Record) bool { return r.State == StateNone })
	slices.SortStableFunc(records, func(a, b Record) int { return cmp.Compare(b.Began.UnixMicro(), a.Began.UnixMicro()) })
	return records, nil
}

// listRecords returns the keys of the records of a group.
func (c *Client) listRecords(ctx context.Context, key, group string) (names []string, err error) {
	for seen := 0; ; {
		var reply any
		err := c.Once(key).ask(ctx, "list records of", func(ctx context.Context) (err error) {
			reply, err = c.Once(key).backend().List(ctx, group, seen, listedAtOnce)
			return err
		})
		if err != nil {
			return nil, err
		}
		looked, listed := listedKeys(c.prefix, reply)
		names = append(names, listed...)
		if seen += looked; looked < listedAtOnce {
			return names, nil
		}
	}
}

// listedAtOnce bounds how many records of a group one script looks at: while it runs, the server does nothing else.
const listedAtOnce = 1000

// listedKeys reads how many records a script has looked at, and the keys of records, without what is put in front of them.
func listedKeys(prefix string, reply any) (looked int, names []string) {
	list, _ := reply.([]any)
	if len(list) == 0 {
		return 0, nil
	}
	n, _ := list[0].(int64)
	for _, element := range list[1:] {
		record, _ := element.(string)
		// Those of a group have braces, so they are written as "=" and the key: see newKeys.
		if name, ok := strings.CutPrefix(record, lockscript.Reserved+"once="+prefix); ok {
			names = append(names, name)
		}
	}
	return int(n), names
}

// peekAll reads records side by side; the executor makes batches of it.
func (c *Client) peekAll(ctx context.Context, names []string) ([]Record, error) {
	records, errs := make([]Record, len(names)), make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() { records[i], errs[i] = c.Once(name).Peek(ctx) })
	}
	all.Wait()
	return records, cmp.Or(errs...)
}
