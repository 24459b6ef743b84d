//go:build linux || darwin

package supervise

import (
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The states of a mirror: a stop of the parent, because the command has stopped. The shell then gives the terminal to another
// job. The supervisor continues the parent when the command continues or ends.
const (
	mirrorNone       = iota
	mirrorStopping   // the parent is about to stop, or has stopped
	mirrorContinuing // the supervisor sends CONT to the parent
)

// A parent that the supervisor continues gets CONT every mirrorInterval until it runs, for mirrorTimeout at most. One is not
// enough, because a CONT that comes before the STOP has no effect.
const (
	mirrorInterval = 5 * time.Millisecond
	mirrorTimeout  = time.Second
)

// stopDelay is how long a STOP of a process for itself takes to have an effect: the kernel delivers it to any thread.
const stopDelay = 100 * time.Millisecond

// mirroring is the side of the parent. The mutex is locked until a STOP has had an effect. So the mirror does not end with a
// CONT that has come before it.
type mirroring struct{ mu sync.Mutex }

// stop stops this process, unless the command has continued. It looks because a message that was written before a stop may
// be read after it. In this order a supervisor that sees no mirror can rely on the parent seeing the command as it is now.
func (m *mirroring) stop(p page, command int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p.mirror.Store(mirrorStopping)
	if !isStopped(command) {
		p.mirror.Store(mirrorNone)
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	time.Sleep(stopDelay)
}

// continued ends the mirror, because this process has received CONT. It returns true if the supervisor has sent the CONT, so
// that the command needs none.
func (m *mirroring) continued(p page) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return p.mirror.Swap(mirrorNone) == mirrorContinuing
}

// continueParent continues the parent if it has stopped because of the command, which has continued or ended.
func (p page) continueParent() {
	if !p.mirror.CompareAndSwap(mirrorStopping, mirrorContinuing) {
		return
	}
	for until := now().add(mirrorTimeout); p.mirror.Load() == mirrorContinuing && now() < until; time.Sleep(mirrorInterval) {
		_ = syscall.Kill(os.Getppid(), syscall.SIGCONT)
	}
}

// jobStops reports whether a command that a signal has stopped stops its whole job: it was a key of the terminal, or the
// command has stopped itself in the foreground, as a shell does for "suspend". Without a terminal there is no job control,
// so no process would continue the parent.
func jobStops(command int, sig syscall.Signal) bool {
	foreground, err := foregroundGroup()
	if err != nil {
		return false
	}
	switch sig {
	case syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU:
		return true
	}
	group, err := syscall.Getpgid(command)
	return foreground == syscall.Getpgrp() || err == nil && foreground == group
}

// foregroundGroup returns the process group that has the controlling terminal, or an error if there is none.
func foregroundGroup() (int, error) {
	terminal, err := os.OpenFile("/dev/tty", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return 0, err
	}
	defer terminal.Close()
	return unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
}

// continueOtherGroup continues a command that has made a process group of its own, as an interactive shell does: a CONT
// that the shell sends to the job does not reach it.
func continueOtherGroup(command int) {
	if group, err := syscall.Getpgid(command); err == nil && group != syscall.Getpgrp() {
		forward(command, syscall.SIGCONT)
	}
}
