package supervise

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// now reads CLOCK_BOOTTIME, which continues in a suspend.
func now() instant {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("supervise: no CLOCK_BOOTTIME: " + err.Error())
	}
	return instant(ts.Nano())
}

// alarm sends to C at a set instant. It fires at once after a suspend in which the instant has passed, which timers of
// Go do not.
type alarm struct {
	C     <-chan struct{}
	timer *os.File
	fd    int
}

// newAlarm returns an alarm that is not set. The caller must call close.
func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	fired := make(chan struct{}, 1)
	a := &alarm{C: fired, timer: os.NewFile(uintptr(fd), "timer"), fd: fd}
	go func() {
		count := make([]byte, 8)
		for {
			if _, err := a.timer.Read(count); err != nil {
				return
			}
			select {
			case fired <- struct{}{}:
			default:
			}
		}
	}()
	return a, nil
}

// set makes the alarm fire at an instant, in place of the one that was set before. It fires at once if that has passed.
func (a *alarm) set(at instant) {
	var spec unix.ItimerSpec // zero: it does not fire
	if at != never {
		spec.Value = unix.NsecToTimespec(max(int64(at), int64(time.Nanosecond)))
	}
	_ = unix.TimerfdSettime(a.fd, unix.TFD_TIMER_ABSTIME, &spec, nil) // only fails for wrong arguments
}

func (a *alarm) close() { _ = a.timer.Close() }
