//go:build linux || darwin

package supervise

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The words of the link, one message a line.
const (
	wordGranted = "granted" // supervisor: the lock is held, may the command start?
	wordGo      = "go"      // parent: it may
	wordSignal  = "signal"  // parent: it has received the signal of this number
	wordStopped = "stopped" // supervisor: the command, of this process id, was stopped by the signal of this number
	wordSay     = "say"     // supervisor: a quoted text for standard error
)

// linkQueue bounds the messages that wait to be written. Messages may have to wait because the other process may be
// stopped. Further ones are dropped, because the supervisor must not wait for the parent while it renews.
const linkQueue = 256

// link exchanges messages between parent and supervisor. It ends when the other process does.
type link struct {
	file *os.File
	done chan struct{} // closed when all messages are written

	mu     sync.Mutex
	closed bool        // guarded by mu
	queue  chan string // closed with mu locked
}

func newLink(file *os.File) *link {
	l := &link{file: file, queue: make(chan string, linkQueue), done: make(chan struct{})}
	go func() {
		defer close(l.done)
		for line := range l.queue {
			if _, err := io.WriteString(l.file, line); err != nil {
				return
			}
		}
	}()
	return l
}

// send queues a message. It drops the message if the queue is full, or after flush.
func (l *link) send(words ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	select {
	case l.queue <- strings.Join(words, " ") + "\n":
	default:
	}
}

func (l *link) sendNumber(word string, n int) { l.send(word, strconv.Itoa(n)) }

// Write sends a text for standard error. It never fails.
func (l *link) Write(text []byte) (int, error) {
	l.send(wordSay, strconv.Quote(string(text)))
	return len(text), nil
}

// receive calls handle for each message until the other process ends.
func (l *link) receive(handle func(word, rest string)) {
	for lines := bufio.NewReader(l.file); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		handle(word, rest)
	}
}

// flush waits until the messages that were sent are written, for a second at most.
func (l *link) flush() {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.queue)
	}
	l.mu.Unlock()
	select {
	case <-l.done:
	case <-time.After(time.Second):
	}
}

// newLinkFiles returns both ends of a link.
func newLinkFiles() (mine, other *os.File, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	for _, fd := range fds {
		syscall.CloseOnExec(fd)
		_ = syscall.SetNonblock(fd, true)
	}
	return os.NewFile(uintptr(fds[0]), "link"), os.NewFile(uintptr(fds[1]), "link"), nil
}
