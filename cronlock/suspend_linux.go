package cronlock

import (
	"syscall"
	"time"
	"unsafe"
)

// The clocks of clock_gettime(2). Only the second one continues while the host is suspended.
const (
	clockMonotonic = 1
	clockBoottime  = 7
)

// suspendedFor returns how long the host has been suspended since it was started; false in a sandbox that forbids the
// question.
func suspendedFor() (time.Duration, bool) {
	awake, ok := readClock(clockMonotonic)
	all, known := readClock(clockBoottime)
	return all - awake, ok && known
}

func readClock(id uintptr) (time.Duration, bool) {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano()), errno == 0
}
