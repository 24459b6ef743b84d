//go:build linux || darwin

package supervise

import (
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// page is memory that the parent and the supervisor share. It has the deadline, the instant at which the parent kills the supervisor,
// and how far the parent is with a stop of its own, see [mirror]. It is shared memory because a parent that was
// stopped must see the newest deadline first, and not read old ones before.
type page struct {
	deadline *atomic.Int64
	mirror   *atomic.Int64
}

// mapPage maps the file of a page. It leaves the file open.
func mapPage(file *os.File) (page, error) {
	memory, err := unix.Mmap(int(file.Fd()), 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return page{}, os.NewSyscallError("mmap", err)
	}
	return page{(*atomic.Int64)(unsafe.Pointer(&memory[0])), (*atomic.Int64)(unsafe.Pointer(&memory[8]))}, nil
}

// set stores the deadline; never is none.
func (p page) set(at instant) { p.deadline.Store(int64(at)) }

// get returns the deadline, never if there is none.
func (p page) get() instant {
	if at := p.deadline.Load(); at != 0 {
		return instant(at)
	}
	return never
}
