package cli

import (
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/term"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/supervise"
)

// stream is standard output or standard error. It keeps its first error, for callers that look at no single write.
type stream struct {
	to     io.Writer
	failed error // nil, errNoReader, or an error with StatusUnwritten
}

// errNoReader is the error of a stream that no process reads any more. It has no text, and the status of a program that the
// signal PIPE has ended.
var errNoReader = exitWith(supervise.SignalStatus(syscall.SIGPIPE))

// Write returns the first error again, because output that continues after a gap would pass for complete.
func (s *stream) Write(text []byte) (int, error) {
	if s.failed != nil {
		return 0, s.failed
	}
	n, err := s.to.Write(text)
	switch {
	case err == nil:
	case s.lacksReader(err):
		s.failed = errNoReader
	default:
		s.failed = &statusError{StatusUnwritten, "the output is incomplete: " + err.Error()}
	}
	return n, s.failed
}

// lacksReader reports whether the error of a write means that no process reads the stream any more: the other end of a pipe
// or of a terminal has closed, or a TCP connection was reset. EIO of any other file, such as one on a disk, is a failure.
func (s *stream) lacksReader(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EIO) && isTerminal(s.to)
}

// isTerminal reports whether w is a terminal, even if its other end has closed. The kernel answers questions about such a
// terminal with EIO, and questions about other devices with ENOTTY. Some file systems answer with EIO after a failure of
// their disk, but their files are no character devices.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	_, err = term.GetState(int(file.Fd()))
	return !errors.Is(err, syscall.ENOTTY)
}
