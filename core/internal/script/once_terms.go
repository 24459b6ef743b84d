package script

import (
	"time"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// Terms are what an attempt says of the record that it is to leave. The field Own of its hold refers to them.
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
