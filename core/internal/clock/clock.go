package clock

import "time"

// Instant is a reading of a [Clock]. The zero point differs from process to process.
type Instant time.Duration

// Add returns the instant d later.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub returns the time since an earlier instant.
func (i Instant) Sub(earlier Instant) time.Duration { return time.Duration(i - earlier) }

// Clock returns the present instant. Tests put their own in its place.
type Clock func() Instant
