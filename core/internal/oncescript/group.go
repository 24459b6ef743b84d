package oncescript

import (
	"math/bits"

	"github.com/holdfast-go/holdfast/core/internal/lockscript"
)

// Group is the group in which a record counts, see lua/group.lua.
type Group struct {
	Key        string // empty: the record is in no group
	MaxRecords int    // records; 0 is any number
	MaxBytes   int64  // that they may count; 0 is any number
}

// bounded reports whether there is a quota, so that whatever is left of a record has to be counted.
func (g Group) bounded() bool { return g.MaxRecords > 0 || g.MaxBytes > 0 }

// withGroup appends the key of the group, if there is one.
func (g Group) withGroup(keys ...string) []string {
	if g.Key == "" {
		return keys
	}
	return append(keys, g.Key)
}

// beginKeys returns the keys of a script that begins an attempt.
func (g Group) beginKeys(keys ...string) []string {
	keys = g.withGroup(keys...)
	if g.bounded() {
		keys = append(keys, g.Tokens())
	}
	return keys
}

// Tokens is where the last token of a bounded group is remembered.
func (g Group) Tokens() string {
	return lockscript.Reserved + "grouptoken" + g.Key[len(lockscript.GroupPrefix):]
}

// recordOverhead is what a record takes in Redis, with its place in the group, beside what counted is told of.
const recordOverhead = 1536

// Counted returns how many bytes a record with so many bytes of content counts in its group. It rounds up, to one of four
// sizes for each power of two, as lua/group.lua does.
func Counted(content int) int64 {
	n := int64(content) + recordOverhead
	step := int64(1) << (bits.Len64(uint64(n-1)) - 3)
	return (n + step - 1) / step * step
}

// Content returns how many bytes a record has with a value of that length.
func (t *Terms) Content(value int) int { return value + len(t.Fingerprint) + len(t.Note) }
