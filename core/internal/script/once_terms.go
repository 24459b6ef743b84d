package script

import (
	"math/bits"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// Terms are what an attempt says of the record that it is to leave. The field Terms of its hold refers to them.
type Terms struct {
	Retention    time.Duration // for which the record is kept after its end
	Fingerprint  []byte        // of the request; nil for none
	HoldFailures bool          // true if an expired attempt has an unknown outcome; false if the next attempt may begin
	MaxValue     int           // the longest value that is recorded, in bytes
	Grouped      bool          // true if the records of the same hash tag form a group
	Group        Group         // that group; zero if Grouped is false
	Earliest     time.Time     // the window in which an attempt may begin, by the server's clock; zero for no bound
	Latest       time.Time
	Note         string // for readers of the record
	Instance     string // of the client, see package inventory
	Label        string // place of the guard
}

// question is what an answer depends on beside the record.
type question struct {
	ack              transport.Ack
	fingerprint      string
	holdFailures     bool
	group            Group
	size             int64 // that the attempt counts in the group
	earliest, latest any
}

// Question returns a comparable value. Callers of one key with equal questions get equal answers from one state of Redis.
func (t *Terms) Question(ack transport.Ack) any {
	return question{
		ack: ack, fingerprint: string(t.Fingerprint), holdFailures: t.HoldFailures, group: t.Group,
		size: Counted(t.content(t.MaxValue)), earliest: windowBound(t.Earliest), latest: windowBound(t.Latest),
	}
}

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
