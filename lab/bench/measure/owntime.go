package measure

import (
	"syscall"
	"time"
)

// OwnCPUTime is what this process has used so far, in user and kernel mode.
func OwnCPUTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0 // never on Unix
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
