//go:build linux || darwin

package supervise

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// supervisorVariable marks a process as a supervisor. It has the numbers of the descriptors of the link and of the page.
const supervisorVariable = "HOLDFAST_SUPERVISOR_FDS"

// firstDescriptor is the lowest number of a descriptor for the supervisor, unless the limit of this process is lower. It is
// not 3 because the caller may hand descriptors to the command, as make does, and those keep their numbers.
const firstDescriptor = 64

// parent is the process that the caller has started.
type parent struct {
	link       *link
	page       page
	supervisor int // its process id

	inherited map[int]bool        // children that this process had before, as of a shell that has executed holdfast
	wake      chan struct{}       // the command was allowed to start
	heardAll  chan struct{}       // closed when the supervisor has ended, and all its messages were handled
	received  chan syscall.Signal // the first signals, for exitStatus
	mirroring mirroring
}

// receivedQueue bounds the signals that the parent remembers. Later ones do not matter: the supervisor has long caught them itself.
const receivedQueue = 64

// RunParent starts this program again as the supervisor, with the same arguments, and returns the exit status of the supervisor
// when it and all its descendants have ended. If the command died of INT, RunParent does not return: this process dies of
// INT too. The status is [StatusLost] if the supervisor was killed.
func RunParent() (int, error) {
	if err := becomeSubreaper(); err != nil {
		return 0, err
	}
	f := newParent()
	for _, pid := range children(os.Getpid()) {
		f.inherited[pid] = true
	}
	if err := f.start(); err != nil {
		return 0, fmt.Errorf("cannot start the supervisor: %w", err)
	}
	status := f.await()
	<-f.heardAll
	if status.Signaled() && status.Signal() == syscall.SIGINT {
		dieOf(syscall.SIGINT)
	}
	return f.exitStatus(status), nil
}

func newParent() *parent {
	return &parent{
		inherited: make(map[int]bool), wake: make(chan struct{}, 1), heardAll: make(chan struct{}),
		received: make(chan syscall.Signal, receivedQueue),
	}
}

// exitStatus returns the exit status of the parent, and reports a supervisor that was killed. If the parent receives the same
// signal, it was for the whole group, and came before the supervisor could catch it: that ends the wait for the lock.
func (f *parent) exitStatus(supervisor syscall.WaitStatus) int {
	switch {
	case !supervisor.Signaled():
		return supervisor.ExitStatus()
	case supervisor.Signal() == syscall.SIGINT, f.receives(supervisor.Signal()):
		return SignalStatus(supervisor.Signal())
	}
	fmt.Fprintf(os.Stderr, "holdfast: the supervisor of the lock was ended by a signal (%v), and the command with it if it still ran\n", supervisor.Signal())
	return StatusLost
}

// receives reports whether this process has received a signal, or does so in time. It waits because the kernel signals a
// whole group at once, but this process may see the end of the supervisor before its own signal.
func (f *parent) receives(sig syscall.Signal) bool {
	if !slices.Contains(forwarded, os.Signal(sig)) {
		return false
	}
	for timeout := time.After(supervisorSignalTimeout); ; {
		select {
		case received := <-f.received:
			if received == sig {
				return true
			}
		case <-timeout:
			return false
		}
	}
}

// start makes the link and the page, and starts the supervisor.
func (f *parent) start() error {
	mine, other, err := newLinkFiles()
	if err != nil {
		return err
	}
	defer other.Close()
	file, err := newPageFile()
	if err != nil {
		return err
	}
	defer file.Close()
	if f.page, err = mapPage(file); err != nil {
		return err
	}
	f.link = newLink(mine)
	receiveSignals(pipeSignal, func(syscall.Signal) {})
	receiveSignals(forwarded, func(sig syscall.Signal) {
		select {
		case f.received <- sig:
		default:
		}
		if sig == syscall.SIGCONT && f.mirroring.continued(f.page) {
			return // of the supervisor, because the command has continued
		}
		f.link.sendNumber(wordSignal, int(sig))
	})
	if f.supervisor, err = startSupervisor(other, file); err != nil {
		return err
	}
	go func() {
		defer close(f.heardAll)
		f.link.receive(f.handle)
	}()
	return f.watchDeadline()
}

// startSupervisor starts the supervisor with both files, and returns its process id.
func startSupervisor(files ...*os.File) (int, error) {
	path, err := program()
	if err != nil {
		return 0, err
	}
	var numbers []string
	for _, file := range files {
		fd, err := inheritable(file)
		if err != nil {
			return 0, fmt.Errorf("descriptors of files, see ulimit -n: %w", err)
		}
		defer syscall.Close(fd)
		numbers = append(numbers, strconv.Itoa(fd))
	}
	env := append(os.Environ(), supervisorVariable+"="+strings.Join(numbers, ","))
	args := append([]string{supervisorName}, os.Args[1:]...)
	return syscall.ForkExec(path, args, &syscall.ProcAttr{Env: env, Files: []uintptr{0, 1, 2}})
}

// inheritable returns a copy of a descriptor that a child inherits. A number at or above the limit is an invalid argument.
func inheritable(file *os.File) (fd int, err error) {
	for first := firstDescriptor; first > int(os.Stderr.Fd()); first /= 2 {
		fd, err = unix.FcntlInt(file.Fd(), unix.F_DUPFD, first)
		if !errors.Is(err, unix.EINVAL) {
			break
		}
	}
	return fd, err
}

// handle handles a message of the supervisor.
func (f *parent) handle(word, rest string) {
	switch word {
	case wordGranted:
		select {
		case f.wake <- struct{}{}:
		default:
		}
		f.link.send(wordGo)
	case wordSay:
		if text, err := strconv.Unquote(rest); err == nil {
			_, _ = os.Stderr.WriteString(text) // a reader that has gone misses it, which is no reason to end the command
		}
	case wordStopped:
		var command, sig int
		if _, err := fmt.Sscan(rest, &command, &sig); err == nil && jobStops(command, syscall.Signal(sig)) {
			f.mirroring.stop(f.page, command)
		}
	}
}

// deadlineInterval is how often the parent looks for the first deadline of a command that it has allowed to start. It
// has to look because the supervisor may be stopped right after it has stored the deadline.
const deadlineInterval = 50 * time.Millisecond

// watchDeadline kills the supervisor, and all below it, when the deadline passes: the supervisor is stopped or hangs. A deadline only
// moves forward while a command runs, so it is enough to look at it when the last one that was seen has come.
func (f *parent) watchDeadline() error {
	timer, err := newAlarm()
	if err != nil {
		return err
	}
	go func() {
		for starting := false; ; {
			at := f.page.get()
			if at <= now() {
				kill(append(descendants(f.inherited), f.supervisor), syscall.SIGKILL)
				return
			}
			if starting = starting && at == never; starting {
				at = now().add(deadlineInterval)
			}
			timer.set(at)
			select {
			case <-timer.C:
			case <-f.wake:
				starting = true
			}
		}
	}()
	return nil
}

// await returns how the supervisor ended, once the descendants that it has left are killed. They have become children of this
// process.
func (f *parent) await() (status syscall.WaitStatus) {
	ended := false
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if pid == f.supervisor {
			status, ended = ws, true
		}
		if left := descendants(f.inherited); ended && !kill(left, syscall.SIGKILL) {
			return status
		}
	}
}
