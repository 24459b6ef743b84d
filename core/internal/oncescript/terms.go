package oncescript

import "time"

// Terms is what one needs to know to write a record. It is what the hold of an attempt keeps as its own.
type Terms struct {
	Retention    time.Duration
	Fingerprint  []byte
	HoldFailures bool // an expired attempt has an unknown outcome, instead of being repeated
	MaxValue     int
	Grouped      bool
	Group        Group
	Earliest     time.Time
	Latest       time.Time
	Note         string
}
