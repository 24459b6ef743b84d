package core

import "time"

// instant is a reading of a clock that goes on while the host sleeps and is not set by anybody. Go's monotonic
// clock stops in a suspend, so a lease measured with it would look valid after one although Redis has long
// given the lock away (golang.org/issue/24595); the wall clock goes on, but is set by NTP.
type instant time.Duration

func (i instant) add(d time.Duration) instant       { return i + instant(d) }
func (i instant) sub(earlier instant) time.Duration { return time.Duration(i - earlier) }

// clock tells the time; tests put their own in its place.
type clock func() instant
