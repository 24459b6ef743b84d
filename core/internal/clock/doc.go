// Package clock reads a clock that continues while the host is suspended and that cannot be set back.
//
// Why: leases are measured with it. Go's monotonic clock stops in a suspend, so a lease measured with that clock would
// look valid after the suspend, although Redis has long given the lock to another owner (golang.org/issue/24595). The
// wall clock continues, but NTP and administrators set it.
package clock
