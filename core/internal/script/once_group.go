package script

import "math/bits"

// Group is the group in which a record counts, see lua/once/group.lua. The zero value is no group.
type Group struct {
	Key        string // "" if the record is in no group
	MaxRecords int    // 0 for any number
}

// bounded returns true if there is a quota. Then what a release leaves of a record has to be counted too.
func (g Group) bounded() bool { return g.MaxRecords > 0 }

// withGroup returns the keys, followed by that of the group if there is one.
func (g Group) withGroup(keys ...string) []string {
	if g.Key == "" {
		return keys
	}
	return append(keys, g.Key)
}

// recordOverhead is how many bytes a record takes in Redis beside its content, with its membership in the group.
const recordOverhead = 1536

// Counted returns how many bytes a record with that many bytes of content counts in its group. It adds the overhead, and
// rounds up to one of four sizes for each power of two, as lua/once/group.lua does.
func Counted(content int) int64 {
	n := int64(content) + recordOverhead
	step := int64(1) << (bits.Len64(uint64(n-1)) - 3)
	return (n + step - 1) / step * step
}

// content returns how many bytes of content a record has whose value has that many bytes.
func (t *Terms) content(value int) int { return value + len(t.Fingerprint) + len(t.Note) }
