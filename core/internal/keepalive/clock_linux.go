package keepalive

import (
	"syscall"
	"time"
	"unsafe"
)

// boottime is CLOCK_BOOTTIME of clock_gettime(2): monotonic, suspend included.
const boottime = 7

// SystemClock is the clock of the system: CLOCK_BOOTTIME, or the portable clock in a sandbox that forbids the call. It is
// chosen once, because the two clocks do not agree on the time.
var SystemClock = func() Clock {
	if _, ok := readBoottime(); ok {
		return func() Instant {
			now, _ := readBoottime()
			return now
		}
	}
	return portableClock
}()

// readBoottime reads CLOCK_BOOTTIME. It returns false if the system call fails.
func readBoottime() (Instant, bool) {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, boottime, uintptr(unsafe.Pointer(&ts)), 0)
	return Instant(time.Duration(ts.Sec)*time.Second + time.Duration(ts.Nsec)), errno == 0
}
