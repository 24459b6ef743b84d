//go:build linux || darwin

package supervise

import (
	"math"
	"time"
)

// instant is a time in nanoseconds, by a clock that all processes of the host share. On Linux the clock continues in a
// suspend, and nobody can set it.
type instant int64

// never is later than all that now returns.
const never = instant(math.MaxInt64)

// add returns the instant d later. It returns never for never.
func (i instant) add(d time.Duration) instant {
	if i == never {
		return never
	}
	return i + instant(d)
}

// until returns the instant of a time of which the program has just computed how far away it is. Call it at once, because
// a time.Time that is kept over a suspend is wrong.
func until(t time.Time) instant { return now().add(time.Until(t)) }
