package inventory

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

const (
	// maxCount bounds how many keys one SCAN looks at: while it runs, the server does nothing else.
	maxCount = 1000
	// maxScans bounds how many SCANs one call of Next sends, if few keys match.
	maxScans = 16
	// outageLimit is how long a SCAN is sent again while it fails. Why so short: the caller has a cursor, and may go on later.
	outageLimit = time.Second
)

// walk goes over the keys of hashes that match a pattern, and returns their names.
type walk struct {
	Exec    *transport.Executor
	Pattern string
	// NameOf returns the name for a key. It returns false if the key is not wanted.
	NameOf func(key string) (name string, ok bool)
}

// page returns the next names, and the text of the cursor behind them, "" at the end of the walk.
func (w *walk) page(ctx context.Context, cursor string, want int) (names []string, next string, err error) {
	at, err := parseCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	names, end, err := w.next(ctx, &at, want)
	if err != nil || end {
		return names, "", err
	}
	return names, at.String(), nil
}

// next returns the next names, in order, about want of them and each once, and moves the cursor. It returns true at the end of the
// walk. There may be no names before that, because one call looks at a bounded number of them. If it returns an error, the cursor
// has not moved.
//
// It looks at want keys first. While few of them match, it looks at twice as many the next time.
func (w *walk) next(ctx context.Context, at *cursor, want int) (names []string, end bool, err error) {
	c, count := *at, want
	for range maxScans {
		var found []string
		err := transport.Retry(ctx, outageLimit, transport.Transient, func() (err error) {
			tried := c
			if found, end, err = w.scan(ctx, &tried, min(count, maxCount)); err == nil {
				c = tried
			}
			return err
		})
		if err != nil {
			return nil, false, err
		}
		names = append(names, found...)
		if end || len(names) >= want {
			break
		}
		if len(found) < want/2 {
			count *= 2
		}
	}
	*at = c
	slices.Sort(names)
	return slices.Compact(names), end, nil
}

// scan sends one SCAN, and moves the cursor. It returns true at the end of the walk. It may fail after it has chosen a master.
func (w *walk) scan(ctx context.Context, c *cursor, count int) (found []string, end bool, err error) {
	master, err := w.master(ctx, c)
	if err != nil {
		return nil, false, err
	}
	if c.at == "" {
		c.at = "0"
	}
	reply, err := w.scanServer(ctx, master, c.at, count)
	if err != nil {
		return nil, false, err
	}
	if owned := c.scanning; master != nil {
		if owned.keepAll(&reply.own); owned.empty() {
			w.Exec.Nodes.RequestRefresh()
			return nil, false, errNoMaster
		}
	}
	if c.server != "" && reply.server != "" && c.server != reply.server {
		c.at, c.server = "", "" // its cursors are others
		return nil, false, nil
	}
	c.at, c.server = reply.cursor, reply.server
	for _, key := range reply.keys {
		if ctx.Err() != nil {
			return nil, false, ctx.Err() // a server can reply with more keys than COUNT says
		}
		name, wanted := w.NameOf(key)
		if wanted && (master == nil || !c.done.has(int(transport.Slot(key)))) {
			found = append(found, name)
		}
	}
	if c.at != "0" {
		return found, false, nil
	}
	return found, master == nil || c.finish(&reply.own), nil
}

// finish ends the scan of a master that owns these slots now. It returns true if that was the last one.
func (c *cursor) finish(own *slots) bool {
	c.scanning.keepAll(own)
	c.done.addAll(&c.scanning)
	*c = cursor{done: c.done}
	return c.done.firstMissing() == slotCount
}

// master returns the master to scan, nil without a Cluster. If the client knows that it does not own any of the slots for which it
// is scanned, or if there are none, master chooses the owner of the first slot that is not done.
func (w *walk) master(ctx context.Context, c *cursor) (*redis.Client, error) {
	if !w.Exec.InCluster() {
		return nil, nil
	}
	for slot := range slotCount {
		if !c.scanning.has(slot) {
			continue
		}
		if m, err := w.ownerOf(ctx, slot); err != nil || m.Options().Addr == c.node {
			return m, err
		}
	}
	return w.choose(ctx, c)
}

// choose chooses the next master: the owner of the first slot that is not done. It is scanned for all slots that it owns and that
// are not done. If there are none, the client does not know the owner yet, or the slot has none.
func (w *walk) choose(ctx context.Context, c *cursor) (*redis.Client, error) {
	m, err := w.ownerOf(ctx, c.done.firstMissing()%slotCount)
	if err != nil {
		return nil, err
	}
	own, err := w.ownSlots(ctx, m)
	if err != nil {
		return nil, err
	}
	*c = cursor{done: c.done, node: m.Options().Addr, scanning: own}
	c.scanning.removeAll(&c.done)
	if c.scanning.empty() {
		w.Exec.Nodes.RequestRefresh()
		return nil, errNoMaster
	}
	return m, nil
}

// ownerOf returns the master that owns a slot, as far as the client knows.
func (w *walk) ownerOf(ctx context.Context, slot int) (*redis.Client, error) {
	return w.Exec.MasterOf(ctx, script.SlotKey(slot))
}

// escaper takes their meaning from the characters of a pattern.
var escaper = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// lockPattern returns the pattern of the keys of locks that begin with this text.
func lockPattern(begin string) string { return escaper.Replace(begin) + "*" }

// oncePattern returns a pattern of the keys of records whose lock's key would begin with this text. It matches some keys of other
// records too. Why: what is in front of the text depends on braces that may follow it, see script.NewKeys.
func oncePattern(begin string) string {
	return script.Reserved + "once*" + escaper.Replace(begin) + "*"
}
