package core

import (
	"math/bits"

	"github.com/holdfast-go/holdfast/core/internal/lockscript"
)

// recordGroup is the group in which a record counts, see lua/group.lua.
type recordGroup struct {
	key   string // empty: the record is in no group
	most  int    // records; 0 is any number
	bytes int64  // that they may count; 0 is any number
}

// bounded reports whether there is a quota, so that whatever is left of a record has to be counted.
func (g recordGroup) bounded() bool { return g.most > 0 || g.bytes > 0 }

// withGroup appends the key of the group, if there is one.
func (g recordGroup) withGroup(keys ...string) []string {
	if g.key == "" {
		return keys
	}
	return append(keys, g.key)
}

// beginKeys returns the keys of a script that begins an attempt.
func (g recordGroup) beginKeys(keys ...string) []string {
	keys = g.withGroup(keys...)
	if g.bounded() {
		keys = append(keys, g.tokens())
	}
	return keys
}

// tokens is where the last token of a bounded group is remembered.
func (g recordGroup) tokens() string {
	return lockscript.Reserved + "grouptoken" + g.key[len(lockscript.GroupPrefix):]
}

// recordOverhead is what a record takes in Redis, with its place in the group, beside what counted is told of.
const recordOverhead = 1536

// counted returns how many bytes a record with so many bytes of content counts in its group. It rounds up, to one of four
// sizes for each power of two, as lua/group.lua does.
func counted(content int) int64 {
	n := int64(content) + recordOverhead
	step := int64(1) << (bits.Len64(uint64(n-1)) - 3)
	return (n + step - 1) / step * step
}

// content returns how many bytes a record has with a value of that length.
func (r *recordConfig) content(value int) int { return value + len(r.fingerprint) + len(r.note) }
