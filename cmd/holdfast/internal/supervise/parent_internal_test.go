//go:build linux || darwin

package supervise

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestParentStatus: a supervisor that was killed has lost the lock, unless the parent receives the signal too. The parent may do so
// only after it has seen that end.
func TestParentStatus(t *testing.T) {
	t.Parallel()
	const late = supervisorSignalTimeout / 2
	for _, test := range []struct {
		supervisor syscall.WaitStatus
		received   []syscall.Signal
		want       int
		after      time.Duration
	}{
		{7 << 8, nil, 7, 0},
		{7 << 8, []syscall.Signal{syscall.SIGTERM}, 7, 0},
		{syscall.WaitStatus(syscall.SIGKILL), []syscall.Signal{syscall.SIGTERM}, StatusLost, 0},
		{syscall.WaitStatus(syscall.SIGTERM), nil, StatusLost, supervisorSignalTimeout},
		{syscall.WaitStatus(syscall.SIGTERM), []syscall.Signal{syscall.SIGHUP}, StatusLost, supervisorSignalTimeout},
		{syscall.WaitStatus(syscall.SIGTERM), []syscall.Signal{syscall.SIGTERM}, 143, late},
		{syscall.WaitStatus(syscall.SIGTERM), []syscall.Signal{syscall.SIGWINCH, syscall.SIGTERM}, 143, late},
		{syscall.WaitStatus(syscall.SIGTERM), []syscall.Signal{syscall.SIGTERM, syscall.SIGWINCH}, 143, late},
		{syscall.WaitStatus(syscall.SIGINT), nil, 130, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newParent()
			begun := time.Now()
			time.AfterFunc(late, func() {
				for _, sig := range test.received {
					f.received <- sig
				}
			})
			if got, after := f.exitStatus(test.supervisor), time.Since(begun); got != test.want || after != test.after {
				t.Errorf("%+v: %d after %v", test, got, after)
			}
		})
	}
}
