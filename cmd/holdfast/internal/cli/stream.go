package cli

import (
	"errors"
	"io"
	"syscall"
)

// stream is standard output or standard error. It keeps its first error, for callers that look at no single write.
type stream struct {
	to     io.Writer
	failed error // has StatusUnwritten; nil if all was written, or if no process reads the stream any more
}

// Write returns the first error again. Why: an output that goes on after a gap would pass for a complete one.
func (s *stream) Write(text []byte) (int, error) {
	if s.failed != nil {
		return 0, s.failed
	}
	n, err := s.to.Write(text)
	if err != nil && !errors.Is(err, syscall.EPIPE) {
		s.failed = &statusError{StatusUnwritten, "the output is incomplete: " + err.Error()}
		err = s.failed
	}
	return n, err
}
