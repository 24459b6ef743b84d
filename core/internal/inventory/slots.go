package inventory

import (
	"fmt"
	"strconv"
	"strings"
)

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
