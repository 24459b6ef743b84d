package inventory

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

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
