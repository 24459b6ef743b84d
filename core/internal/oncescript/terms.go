package oncescript

import "time"

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
}
