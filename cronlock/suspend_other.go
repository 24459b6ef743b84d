//go:build !linux

package cronlock

import "time"

// suspendedFor returns false: only Linux has a clock that tells a suspend from a clock that was set.
func suspendedFor() (time.Duration, bool) { return 0, false }
