package core

import (
	"syscall"
	"time"
	"unsafe"
)

// boottime is CLOCK_BOOTTIME of clock_gettime(2): monotonic, suspend included.
const boottime = 7

// systemClock is chosen once: the two clocks do not agree on the time.
var systemClock = func() clock {
	if _, ok := readBoottime(); ok {
		return func() instant {
			now, _ := readBoottime()
			return now
		}
	}
	return portableClock // in a sandbox that forbids the call
}()

func readBoottime() (instant, bool) {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, boottime, uintptr(unsafe.Pointer(&ts)), 0)
	return instant(time.Duration(ts.Sec)*time.Second + time.Duration(ts.Nsec)), errno == 0
}
