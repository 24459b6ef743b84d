package ginlock

import (
	"bufio"
	"net"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/middleware"
)

// captureWriter is the writer of a chain of handlers while its answer is captured. Its status and size are those that
// gin's own writer would have: the last status before the first byte is the answer's.
type captureWriter struct {
	gin.ResponseWriter // the real one
	capture            *middleware.Capture
	initial            int // the status before the handlers
	status             int
	size               int // unwritten before the first byte
}

// unwritten is what gin calls the size of an answer that has not begun.
const unwritten = -1

func newCapture(c *gin.Context, buffer int, record bool) *captureWriter {
	w := &captureWriter{
		ResponseWriter: c.Writer, initial: c.Writer.Status(), status: c.Writer.Status(), size: c.Writer.Size(),
		capture: middleware.NewCapture(c.Writer, c.Request.Method, buffer, record),
	}
	if w.Written() { // by a middleware around the guard, whose status holds
		w.capture.WriteHeader(w.status)
	}
	return w
}

func (w *captureWriter) Status() int   { return w.status }
func (w *captureWriter) Size() int     { return w.size }
func (w *captureWriter) Written() bool { return w.size != unwritten }

// WriteHeader takes the status of the answer unless that has begun.
func (w *captureWriter) WriteHeader(status int) {
	if status > 0 && !w.Written() {
		w.status = status
	}
}

func (w *captureWriter) WriteHeaderNow() {
	if !w.Written() {
		w.size = 0
		w.capture.WriteHeader(w.status)
	}
}

func (w *captureWriter) Write(p []byte) (int, error) {
	w.WriteHeaderNow()
	n, err := w.capture.Write(p)
	w.size += n
	return n, err
}

func (w *captureWriter) WriteString(s string) (int, error) {
	w.WriteHeaderNow()
	n, err := w.capture.WriteString(s)
	w.size += n
	return n, err
}

func (w *captureWriter) Flush() {
	w.WriteHeaderNow()
	_ = w.capture.Flush()
}

func (w *captureWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if !w.Written() {
		w.size = 0
	}
	return w.capture.Hijack()
}

// SetReadDeadline, SetWriteDeadline and EnableFullDuplex are what [http.ResponseController] looks for. There is no
// Unwrap: it would reach around the capture.
func (w *captureWriter) SetReadDeadline(deadline time.Time) error {
	return http.NewResponseController(w.ResponseWriter).SetReadDeadline(deadline)
}

func (w *captureWriter) SetWriteDeadline(deadline time.Time) error {
	return http.NewResponseController(w.ResponseWriter).SetWriteDeadline(deadline)
}

func (w *captureWriter) EnableFullDuplex() error {
	return http.NewResponseController(w.ResponseWriter).EnableFullDuplex()
}

// outcome describes a chain that has returned and reported that many errors. With errors and nothing written, a
// middleware around the guard will answer.
func (w *captureWriter) outcome(errors int) Outcome {
	if w.Written() {
		r := w.capture.Response()
		// After c.AbortWithError the renderers around the guard still add a body.
		r.Omitted = r.Omitted || errors > 0 && w.size == 0
		return Outcome{Returned: true, Response: r}
	}
	around := w.ResponseWriter.Written()
	switch {
	case around: // gin's HandleContext has put gin's own writer in place of this one, and sent the answer
		w.status = w.ResponseWriter.Status()
	case errors > 0:
		return Outcome{Returned: true, Failed: true}
	}
	w.capture.WriteHeader(w.status) // for the record only: it is not sent
	r := w.capture.Response()
	r.Omitted = r.Omitted || around && w.ResponseWriter.Size() > 0
	return Outcome{Returned: true, Unanswered: !around && w.status == w.initial, Response: r}
}

// send sends what was held back. An answer that was not begun is not begun now either: gin sends its status last,
// and before that a middleware around the guard may give it a body.
func (w *captureWriter) send() {
	if !w.Written() {
		w.ResponseWriter.WriteHeader(w.status)
		return
	}
	_ = w.capture.Send() // nobody is left to tell of a client that does not read its answer
}
