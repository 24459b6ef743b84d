package keepalive

import (
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// SystemClock is the clock of the system: a boottimeClock, or the portable clock in a sandbox that forbids the system call. It is
// chosen once, because the two clocks do not agree on the time.
var SystemClock = func() Clock {
	if _, err := readBoottime(); err != nil {
		return portableClock
	}
	return newBoottimeClock(readBoottime).now
}()

// boottimeClock tells the time of CLOCK_BOOTTIME, which continues in a suspend. It adds the monotonic clock of package time, which
// does not, and the difference of the two. The difference is read again when it is older than differenceTTL, because only a suspend
// changes it, and because that takes a system call, while reading the monotonic clock takes none.
//
// It is never ahead of CLOCK_BOOTTIME, so a command never seems to be sent later than it was. For differenceTTL after a suspend it may
// lack the time of that suspend.
type boottimeClock struct {
	read  func() (Instant, error) // CLOCK_BOOTTIME
	start time.Time               // zero point of monotonic readings

	difference atomic.Int64 // CLOCK_BOOTTIME less the monotonic reading, in nanoseconds
	readAt     atomic.Int64 // monotonic reading before which the difference was read last, in nanoseconds
}

// differenceTTL limits the age of the difference. It is so short that a process may as well be paused for as long between a reading of
// any clock and what depends on it.
const differenceTTL = time.Millisecond

// newBoottimeClock returns a clock that tells the time of read, which must not fail.
func newBoottimeClock(read func() (Instant, error)) *boottimeClock {
	boot, _ := read()
	c := &boottimeClock{read: read, start: time.Now()}
	c.difference.Store(int64(boot))
	return c
}

// now implements [Clock].
func (c *boottimeClock) now() Instant {
	now := time.Since(c.start)
	if now-time.Duration(c.readAt.Load()) >= differenceTTL {
		now = c.readDifference()
	}
	return Instant(now).Add(time.Duration(c.difference.Load()))
}

// readDifference reads the difference, and returns the monotonic reading. CLOCK_BOOTTIME is read first, so the difference is too small
// if the goroutine is paused between the readings, and never too great. Therefore the greatest that was ever read is the best one.
func (c *boottimeClock) readDifference() time.Duration {
	boot, _ := c.read()
	now := time.Since(c.start)
	read, known := int64(boot)-int64(now), c.difference.Load()
	for read > known && !c.difference.CompareAndSwap(known, read) {
		known = c.difference.Load()
	}
	c.readAt.Store(int64(now))
	return now
}

// boottime is CLOCK_BOOTTIME of clock_gettime(2): monotonic, suspend included.
const boottime = 7

// readBoottime reads CLOCK_BOOTTIME. It returns an error if the system call fails.
func readBoottime() (Instant, error) {
	var ts syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, boottime, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return 0, errno
	}
	return Instant(time.Duration(ts.Sec)*time.Second + time.Duration(ts.Nsec)), nil
}
