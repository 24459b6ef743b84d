package ginlock

import (
	"bufio"
	"io"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
	"github.com/holdfast-go/holdfast/middleware/internal/writer"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// captureWriter is the writer of a chain of handlers while its answer is captured. Its status and size are those that
// the real writer would have: the last status before the first byte is the answer's. Whether the answer has begun is what
// was written here, or what Written of the real writer returns. A size does not tell it: that of a writer which buffers
// may be 0 from the beginning.
type captureWriter struct {
	gin.ResponseWriter // the real one
	capture            *httpguard.Capture
	detour             *detour // nil if the real writer is not gin's own
	early              bool    // the real writer gets a status as soon as it is set, and sends nothing yet
	initial            int     // the status before the handlers
	status             int
	size               int
	written            bool
	around             bool // the answer was begun around this writer, after the handlers had begun
}

// newCapture returns the writer for the chain, and what to call when that has ended, however.
func newCapture(c *gin.Context, buffer int, record bool) (w *captureWriter, end func()) {
	w = &captureWriter{ResponseWriter: c.Writer, initial: statusOf(c.Writer), size: c.Writer.Size()}
	w.status, w.written = w.initial, c.Writer.Written()
	real, end := w.watch(c)
	_, nested := c.Writer.(*captureWriter)
	w.early = nested || w.detour != nil
	w.capture = httpguard.NewCapture(real, c.Request.Method, buffer, record)
	if w.written { // by a middleware around the guard, whose status holds
		w.capture.WriteHeader(w.status)
	}
	return w, end
}

// statusOf returns the status that a writer would send. That of a writer which buffers may be 0 until there is another.
func statusOf(w gin.ResponseWriter) int {
	if status := w.Status(); status != 0 {
		return status
	}
	return http.StatusOK
}

// exposed returns the writer with those optional methods of the real one that are not gin's.
func (w *captureWriter) exposed() gin.ResponseWriter { return exposed(w, w.full, w.ResponseWriter) }

// exposed returns w with those optional methods of the real writer that are not gin's. They are called on full.
func exposed(w gin.ResponseWriter, full func() writer.Full, real gin.ResponseWriter) gin.ResponseWriter {
	_, reads := real.(io.ReaderFrom)
	_, pushes := real.(http.Pusher)
	switch {
	case reads && pushes:
		return struct {
			gin.ResponseWriter
			unwrapper
			io.ReaderFrom
			pusher
		}{w, w.(unwrapper), full(), full()}
	case reads:
		return struct {
			gin.ResponseWriter
			unwrapper
			io.ReaderFrom
		}{w, w.(unwrapper), full()}
	case pushes:
		return struct {
			gin.ResponseWriter
			unwrapper
			pusher
		}{w, w.(unwrapper), full()}
	}
	return w
}

type (
	unwrapper interface{ Unwrap() http.ResponseWriter }
	pusher    interface{ http.Pusher }
)

// Unwrap is for [http.ResponseController]. It does not lead around the capture.
func (w *captureWriter) Unwrap() http.ResponseWriter {
	return writer.Expose(w.full(), w.ResponseWriter)
}

func (w *captureWriter) full() writer.Full {
	return fullWriter{writer.Forward{ResponseWriter: w.ResponseWriter}, w}
}

// fullWriter has the methods of a captureWriter as net/http names them.
type fullWriter struct {
	writer.Forward // to the real writer
	w              *captureWriter
}

func (f fullWriter) Header() http.Header                          { return f.w.Header() }
func (f fullWriter) WriteHeader(status int)                       { f.w.WriteHeader(status) }
func (f fullWriter) Write(p []byte) (int, error)                  { return f.w.Write(p) }
func (f fullWriter) WriteString(s string) (int, error)            { return f.w.WriteString(s) }
func (f fullWriter) ReadFrom(src io.Reader) (int64, error)        { return f.w.readFrom(src) }
func (f fullWriter) Flush()                                       { f.w.Flush() }
func (f fullWriter) FlushError() error                            { return f.w.flush() }
func (f fullWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) { return f.w.Hijack() }

// look takes over an answer that was begun around this writer.
func (w *captureWriter) look() {
	if w.written || !w.ResponseWriter.Written() {
		return
	}
	w.written, w.around = true, true
	w.status, w.size = statusOf(w.ResponseWriter), w.ResponseWriter.Size()
	w.capture.WriteHeader(w.status)
	w.capture.Partial()
}

func (w *captureWriter) Header() http.Header { return w.capture.Header() }

func (w *captureWriter) Status() int {
	w.look()
	return w.status
}

func (w *captureWriter) Size() int {
	w.look()
	return w.size
}

func (w *captureWriter) Written() bool {
	w.look()
	return w.written
}

// WriteHeader takes the status of the answer unless that has begun.
func (w *captureWriter) WriteHeader(status int) {
	if status <= 0 || w.Written() {
		return
	}
	w.status = status
	if w.early {
		w.ResponseWriter.WriteHeader(status) // for what goes around this writer
	}
}

func (w *captureWriter) WriteHeaderNow() {
	if !w.Written() {
		w.begin()
		w.capture.WriteHeader(w.status)
	}
}

// begin notes that the answer has begun here.
func (w *captureWriter) begin() { w.written, w.size = true, max(w.size, 0) }

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

func (w *captureWriter) readFrom(src io.Reader) (int64, error) {
	w.WriteHeaderNow()
	n, err := w.capture.ReadFrom(src)
	w.size += int(n)
	return n, err
}

func (w *captureWriter) Flush() { _ = w.flush() }

func (w *captureWriter) flush() error {
	w.WriteHeaderNow()
	return w.capture.Flush()
}

func (w *captureWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if !w.Written() {
		w.begin()
	}
	return w.capture.Hijack()
}

// outcome describes a chain that has returned and reported that many errors. With errors and nothing written, a
// middleware around the guard will answer.
func (w *captureWriter) outcome(c *gin.Context, errors int) httplock.Handled {
	if w.Written() {
		if w.passedBy(c) {
			w.capture.Partial()
		}
		r := w.capture.Response()
		// After c.AbortWithError the renderers around the guard still add a body.
		r.Omitted = r.Omitted || errors > 0 && w.size == 0
		return httplock.Handled{Returned: true, Response: r}
	}
	if errors > 0 {
		return httplock.Handled{Returned: true, Failed: true}
	}
	r, unanswered := w.capture.Response(), w.status == w.initial
	r.Status = w.status
	// Something around the guard has set a status of an error before, as gin does for paths without a route, and is going
	// to write the text.
	r.Omitted = unanswered && w.status >= http.StatusBadRequest
	return httplock.Handled{Returned: true, Unanswered: unanswered, Response: r}
}

// passedBy reports whether a part of the answer was written around this writer, although it was begun here: by gin's
// HandleContext, which puts gin's own writer in the place of all others. With a detour that is known more exactly.
func (w *captureWriter) passedBy(c *gin.Context) bool {
	if w.detour != nil {
		return false
	}
	return w.capture.Held() && w.ResponseWriter.Written() || isGinsOwn(c.Writer)
}

// send sends what was held back. An answer that was not begun is not begun now either: gin sends its status last,
// and before that a middleware around the guard may give it a body.
func (w *captureWriter) send() {
	if w.written {
		_ = w.capture.Send() // nobody is left to tell of a client that does not read its answer
	} else if w.status != w.initial {
		w.ResponseWriter.WriteHeader(w.status)
	}
}

// abandon is for a chain that did not return normally or did not answer.
func (w *captureWriter) abandon() {
	w.capture.Abandon()
	if w.early && !w.ResponseWriter.Written() {
		w.ResponseWriter.WriteHeader(w.initial)
	}
}
