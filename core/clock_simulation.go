//go:build holdfast_simulation

package core

import "time"

// systemClock is that of package time, which is virtual in a bubble of testing/synctest. Only the simulation of the
// fault tests is built with it.
var systemClock clock = func() instant { return instant(time.Now().UnixNano()) }
