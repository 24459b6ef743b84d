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
	status             int
	size               int // unwritten before the first byte
}

// unwritten is what gin calls the size of an answer that has not begun.
const unwritten = -1

func newCapture(c *gin.Context, buffer int, record bool) *captureWriter {
	return &captureWriter{
		ResponseWriter: c.Writer, status: c.Writer.Status(), size: unwritten,
		capture: middleware.NewCapture(immediate{c.Writer}, c.Request.Method, buffer, record),
	}
}

// immediate is gin's writer in net/http's way, which sends the header together with the status.
type immediate struct{ gin.ResponseWriter }

func (w immediate) WriteHeader(status int) {
	w.ResponseWriter.WriteHeader(status)
	w.ResponseWriter.WriteHeaderNow()
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

// outcome judges a chain that has returned. If it has reported errors and written nothing, a middleware around the guard
// will answer, so the real writer is left as the chain would have left it.
func (w *captureWriter) outcome(errors int) Outcome {
	if errors > 0 && !w.Written() {
		w.ResponseWriter.WriteHeader(w.status)
		return Outcome{Returned: true, Failed: true}
	}
	w.WriteHeaderNow()
	return Outcome{Returned: true, Response: w.capture.Response()}
}
