package keepalive

import "time"

// Instant is a reading of a [Clock], in nanoseconds since a zero point. The zero point differs from process to process, so
// an Instant has no meaning outside of its process.
type Instant time.Duration

// Add returns the instant d later, or earlier if d is negative.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub returns the time from earlier to i. It is negative if earlier is the later one.
func (i Instant) Sub(earlier Instant) time.Duration { return time.Duration(i - earlier) }

// Clock returns the present instant. It must be safe for concurrent use. Tests replace it.
type Clock func() Instant
