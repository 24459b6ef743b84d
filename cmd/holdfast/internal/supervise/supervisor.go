//go:build linux || darwin

package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Supervisor is the process that holds the lock and starts the command. A process has one at most.
type Supervisor struct {
	link    *link
	page    page
	pairs   *pairing
	renewed chan struct{}

	ctx       context.Context // ends when the process should give up waiting
	interrupt context.CancelCauseFunc
	mayStart  chan struct{} // the parent allows the command to start

	exit func(status int) // ends the process; tests replace it

	mu        sync.Mutex
	command   int       // process id of the command, 0 if none runs; guarded by mu
	startedAt instant   // when the command had started; guarded by mu
	running   bool      // the command or what it has left behind; guarded by mu
	stopping  bool      // the command is being ended; guarded by mu
	asked     bool      // the command has received TERM; guarded by mu
	idleSince time.Time // when the context or the last command has ended, whichever was later; guarded by mu
}

// IsSupervisor reports whether [RunParent] has started this process.
func IsSupervisor() bool { return os.Getenv(supervisorVariable) != "" }

// Attach makes this process the supervisor. The caller must end the process with [Supervisor.Exit].
func Attach() (*Supervisor, error) {
	var fds []int
	for number := range strings.SplitSeq(os.Getenv(supervisorVariable), ",") {
		fd, err := strconv.Atoi(number)
		if err != nil || fd <= int(os.Stderr.Fd()) {
			return nil, fmt.Errorf("%s=%q: this variable is for holdfast itself", supervisorVariable, os.Getenv(supervisorVariable))
		}
		syscall.CloseOnExec(fd)
		fds = append(fds, fd)
	}
	if len(fds) != 2 {
		return nil, errors.New(supervisorVariable + ": this variable is for holdfast itself")
	}
	if err := os.Unsetenv(supervisorVariable); err != nil {
		return nil, err
	}
	rename(supervisorName)
	if err := becomeSubreaper(); err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fds[1]), "page")
	shared, err := mapPage(file)
	if err != nil {
		return nil, err
	}
	_ = file.Close()
	k := newSupervisor(newLink(os.NewFile(uintptr(fds[0]), "link")), shared)
	k.listen()
	return k, nil
}

func newSupervisor(l *link, shared page) *Supervisor {
	k := &Supervisor{
		link: l, page: shared, renewed: make(chan struct{}, 1), mayStart: make(chan struct{}, 1),
	}
	k.ctx, k.interrupt = context.WithCancelCause(context.Background())
	k.pairs, k.exit = &pairing{forward: k.forward}, k.Exit
	return k
}

// listen begins to receive signals and the messages of the parent.
func (k *Supervisor) listen() {
	receiveSignals(jobSignals, func(syscall.Signal) {})
	receiveSignals(pipeSignal, func(syscall.Signal) {})
	receiveSignals(forwarded, func(sig syscall.Signal) { k.received(fromSupervisor, sig) })
	go func() {
		k.link.receive(k.handle)
		k.lostParent()
	}()
}

// Context returns a context that ends, with an [Interrupted] as its cause, if the parent has ended, or if a signal arrives
// that ends the process while no command runs or while the command is being ended. The process then ends within
// some seconds of the command, whatever Redis does.
func (k *Supervisor) Context() context.Context { return k.ctx }

// Stderr returns a writer for messages to people. The parent writes them, because the terminal may stop processes
// that write in the background.
func (k *Supervisor) Stderr() io.Writer { return k.link }

// Renewed notifies the supervisor of a renewed lease. It does not block.
func (k *Supervisor) Renewed() {
	select {
	case k.renewed <- struct{}{}:
	default:
	}
}

// Exit ends the process with a status, or with INT if the status says that the command died of it.
func (k *Supervisor) Exit(status int) {
	k.link.flush()
	if status == signalStatus+int(syscall.SIGINT) {
		dieOf(syscall.SIGINT)
	}
	os.Exit(status)
}

// handle handles a message of the parent.
func (k *Supervisor) handle(word, rest string) {
	switch word {
	case wordGo:
		select {
		case k.mayStart <- struct{}{}:
		default:
		}
	case wordSignal:
		if number, err := strconv.Atoi(rest); err == nil {
			k.received(fromParent, syscall.Signal(number))
		}
	}
}
