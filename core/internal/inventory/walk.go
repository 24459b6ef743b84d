package inventory

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
	// outageLimit is how long a SCAN is sent again while it fails. It is short because the caller has a cursor, and may continue
	// later.
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

// oncePattern returns a pattern of the keys of records whose lock's key would begin with this text. It matches some keys of
// other records too, because what is in front of the text depends on braces that may follow it, see script.NewKeys.
func oncePattern(begin string) string {
	return script.Reserved + "once*" + escaper.Replace(begin) + "*"
}

// ErrCursor is wrapped by the error for a text that is no cursor.
var ErrCursor = errors.New("no cursor of this version")

// maxRead bounds how many records one call reads while it looks for records in a state.
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
	script.State
	noLock bool // the hash is no lock
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
		state, err := l.Instance.Summary(ctx, k, maxHolds)
		return Lock{name, state, transport.WrongType(err)}, readError(k, err)
	})
	for _, lock := range found {
		switch {
		case lock.noLock:
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
	once := &script.Once{Instance: l.Instance}
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
// of members to a group, and a server can reply any number of keys to SCAN, so there must not be a goroutine for each.
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

// errNoMaster is the error of a walk that a replica of a Cluster has answered, whose data may be incomplete, or a master that has
// lost the slots for which it was asked. The client does not know the new master yet.
var errNoMaster = transport.WithOutcome(errors.New("the server does not own the slots any more"), transport.NotExecuted)

// scanned is the answer of a server to one SCAN.
type scanned struct {
	keys   []string // a key may be there twice
	cursor string   // of the next SCAN; "0" at the end
	// server stands for the process that has answered, in its present role; "" if the user may not ask. It changes with a restart
	// and with a failover.
	server string
	own    slots // of the server, after the SCAN; empty without a Cluster
}

// scanServer sends one SCAN for hashes to a master, or to the only server if master is nil. count bounds its work.
func (w *walk) scanServer(ctx context.Context, master *redis.Client, cursor string, count int) (s scanned, err error) {
	commands := [][]any{
		{"info", "replication"},
		{"scan", cursor, "match", w.Pattern, "count", count, "type", "hash"},
	}
	if master != nil {
		commands = append(commands, nodesCommand)
	}
	answers, err := w.Exec.AskServer(ctx, master, commands...)
	if err != nil {
		return scanned{}, err
	}
	if err := answers[1].Err; err != nil {
		return scanned{}, err
	}
	if master != nil {
		if s.own, err = readOwn(answers[2]); err != nil {
			return scanned{}, err
		}
	}
	info, _ := answers[0].Reply.(string) // without the right to INFO there is none
	s.server = field(info, "role") + field(info, "master_replid")
	s.cursor, s.keys, err = script.ReadScan(answers[1].Reply)
	return s, err
}

// field returns a field of a reply to INFO, "" if there is none.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// nodesCommand asks a server for the nodes of its Cluster.
var nodesCommand = []any{"cluster", "nodes"}

// ownSlots asks a server of a Cluster for the slots that it owns.
func (w *walk) ownSlots(ctx context.Context, master *redis.Client) (slots, error) {
	answers, err := w.Exec.AskServer(ctx, master, nodesCommand)
	if err != nil {
		return slots{}, err
	}
	return readOwn(answers[0])
}

// readOwn reads from the answer to CLUSTER NODES which slots the server owns: none if it is a replica. Each line has the node's ID,
// address, flags, master, ping, pong, epoch and state of the link, and then its slots. Slots that are on their way are in brackets.
//
// The slots that the client knows do not serve, because it learns late that a slot has moved.
func readOwn(answer transport.Answer) (own slots, err error) {
	if answer.Err != nil {
		return slots{}, answer.Err
	}
	text, _ := answer.Reply.(string)
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 8 || !strings.Contains(words[2], "myself") {
			continue
		}
		for _, word := range words[8:] {
			if some, ok := parseSlots(word); ok {
				own.addAll(&some)
			}
		}
	}
	return own, nil
}

// cursor is the position of a walk. The zero value is the beginning.
type cursor struct {
	node   string // address of the master that is scanned; "" without a Cluster
	server string // see transport.Scanned; "" if it is not known
	at     string // cursor of its SCAN; "" before the first one

	done, scanning slots // of a Cluster; scanning is empty if the next master has not been chosen
}

// String returns the cursor as text of letters, digits, "-" and "_". It is never empty.
func (c *cursor) String() string {
	text := strings.Join([]string{"1", c.node, c.server, c.at, c.done.String(), c.scanning.String()}, "|")
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

// parseCursor reads what String returns. "" is the beginning.
func parseCursor(text string) (c cursor, err error) {
	if text == "" {
		return cursor{}, nil
	}
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	parts := strings.Split(string(decoded), "|")
	if err != nil || len(parts) != 6 || parts[0] != "1" {
		return cursor{}, fmt.Errorf("%w: %q", ErrCursor, text)
	}
	c.node, c.server, c.at = parts[1], parts[2], parts[3]
	var done, scanning bool
	c.done, done = parseSlots(parts[4])
	c.scanning, scanning = parseSlots(parts[5])
	if _, err := strconv.ParseUint(c.at, 10, 64); err != nil && c.at != "" || !done || !scanning {
		return cursor{}, fmt.Errorf("%w: %q", ErrCursor, text)
	}
	return c, nil
}

// slotCount is how many slots a Cluster has.
const slotCount = 16384

// slots is a set of slots of a Cluster. The zero value is empty.
type slots [slotCount / 64]uint64

func (s *slots) add(slot int)           { s[slot/64] |= 1 << (slot % 64) }
func (s *slots) has(slot int) bool      { return s[slot/64]&(1<<(slot%64)) != 0 }
func (s *slots) empty() bool            { return *s == slots{} }
func (s *slots) addAll(other *slots)    { s.combine(other, func(a, b uint64) uint64 { return a | b }) }
func (s *slots) removeAll(other *slots) { s.combine(other, func(a, b uint64) uint64 { return a &^ b }) }
func (s *slots) keepAll(other *slots)   { s.combine(other, func(a, b uint64) uint64 { return a & b }) }

func (s *slots) combine(other *slots, f func(a, b uint64) uint64) {
	for i := range s {
		s[i] = f(s[i], other[i])
	}
}

// firstMissing returns the first slot that is not in the set. It returns slotCount if all are.
func (s *slots) firstMissing() int {
	slot := 0
	for slot < slotCount && s.has(slot) {
		slot++
	}
	return slot
}

// String returns the ranges of the set, such as "0-5460,16383".
func (s *slots) String() string {
	var ranges []string
	for slot := 0; slot < slotCount; slot++ {
		if !s.has(slot) {
			continue
		}
		first := slot
		for slot+1 < slotCount && s.has(slot+1) {
			slot++
		}
		if first == slot {
			ranges = append(ranges, strconv.Itoa(first))
		} else {
			ranges = append(ranges, fmt.Sprintf("%d-%d", first, slot))
		}
	}
	return strings.Join(ranges, ",")
}

// parseSlots reads what String returns. It returns false for any other text.
func parseSlots(text string) (s slots, ok bool) {
	if text == "" {
		return s, true
	}
	for part := range strings.SplitSeq(text, ",") {
		from, to, ranged := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		last := first
		if ranged && err == nil {
			last, err = strconv.Atoi(to)
		}
		if err != nil || first < 0 || last >= slotCount {
			return slots{}, false
		}
		for slot := first; slot <= last; slot++ {
			s.add(slot)
		}
	}
	return s, true
}
