// Package clock reads a clock that continues while the host is suspended and that cannot be set back.
//
// Why: leases are measured with it. Go's monotonic clock stops in a suspend (golang.org/issue/24595). A lease
// measured with it would look valid after the suspend, although Redis has long granted the lock to another owner. The wall
// clock continues, but NTP and administrators set it.
package clock
