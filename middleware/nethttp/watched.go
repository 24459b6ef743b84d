package httplock

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/holdfast-go/holdfast/middleware/internal/writer"
)

// watchedWriter passes everything on, and remembers the status of the answer: it is the writer of handlers behind
// [Exclusive] and of handlers of refusals.
//
// One thing of net/http's writer is lost on all that wrap it: [http.MaxBytesReader] no longer announces that the
// connection of a client which sends too much will be closed.
type watchedWriter struct {
	writer.Forward
	status   int // 0 until the answer has begun
	hijacked bool
	failed   bool // the handler has reported errors, which something around the guard answers
}

func watch(w http.ResponseWriter) *watchedWriter {
	return &watchedWriter{Forward: writer.Forward{ResponseWriter: w}}
}

// exposed returns the writer with the optional methods of the real one.
func (w *watchedWriter) exposed() http.ResponseWriter {
	return writer.ExposeTransparent(w, w.ResponseWriter)
}

// wrote reports whether the answer has begun.
func (w *watchedWriter) wrote() bool { return w.status != 0 || w.hijacked }

// Ended is for frameworks with writers of their own: see [writer.Answer].
func (w *watchedWriter) Ended(status int, answered, failed bool) {
	if answered {
		w.status = status
	}
	w.failed = failed
}

// begin notes the status of the answer, unless it has begun.
func (w *watchedWriter) begin(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *watchedWriter) WriteHeader(status int) {
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		w.begin(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *watchedWriter) Write(p []byte) (int, error) {
	w.begin(http.StatusOK)
	return w.ResponseWriter.Write(p)
}

func (w *watchedWriter) WriteString(s string) (int, error) {
	w.begin(http.StatusOK)
	return w.Forward.WriteString(s)
}

func (w *watchedWriter) ReadFrom(src io.Reader) (int64, error) {
	n, err := w.Forward.ReadFrom(src)
	if n > 0 {
		w.begin(http.StatusOK)
	}
	return n, err
}

func (w *watchedWriter) Flush() { _ = w.FlushError() }

func (w *watchedWriter) FlushError() error {
	err := w.Forward.FlushError()
	if !errors.Is(err, http.ErrNotSupported) {
		w.begin(http.StatusOK)
	}
	return err
}

func (w *watchedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := w.Forward.Hijack()
	w.hijacked = w.hijacked || err == nil
	return conn, buffered, err
}
