package ginlock

import (
	"bufio"
	"io"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/middleware/internal/writer"
)

// chainWriter is the writer of a chain of handlers while its answer is captured. Its status and size are those that
// the real writer would have: the last status before the first byte is the answer's. Whether the answer has begun is what
// was written here, or what Written of the real writer returns. A size does not tell it: that of a writer which buffers
// may be 0 from the beginning.
type chainWriter struct {
	gin.ResponseWriter                     // the real one
	guarded            http.ResponseWriter // the guard's
	capture            writer.Capture      // behind it
	detours            bool                // are noticed, because the real writer is gin's own
	early              bool                // the real writer gets a status as soon as it is set, and sends nothing yet
	initial            int                 // the status before the handlers
	status             int
	size               int
	written            bool
}

// newChainWriter returns the writer for the chain, and what to call when that has ended, however.
func newChainWriter(c *gin.Context, guarded http.ResponseWriter, capture writer.Capture, f *front) (w *chainWriter, end func()) {
	w = &chainWriter{
		ResponseWriter: c.Writer, guarded: guarded, capture: capture,
		initial: statusOf(c.Writer), size: c.Writer.Size(), written: c.Writer.Written(),
	}
	w.status = w.initial
	undo := f.watch(capture)
	_, nested := c.Writer.(*chainWriter)
	w.detours = f.detour != nil
	w.early = nested || w.detours
	if w.written { // by a middleware around the guard, whose status holds
		guarded.WriteHeader(w.status)
	}
	return w, func() {
		undo()
		if w.early && !w.ResponseWriter.Written() {
			w.ResponseWriter.WriteHeader(w.initial)
		}
	}
}

// statusOf returns the status that a writer would send. That of a writer which buffers may be 0 until there is another.
func statusOf(w gin.ResponseWriter) int {
	if status := w.Status(); status != 0 {
		return status
	}
	return http.StatusOK
}

// A chained writer is one of this package for a chain.
type chained interface {
	gin.ResponseWriter
	io.ReaderFrom
	Unwrap() http.ResponseWriter
}

type pusher interface{ http.Pusher }

// exposed returns w, which can push if the real writer can.
func exposed(w chained, real gin.ResponseWriter) gin.ResponseWriter {
	if p, pushes := real.(http.Pusher); pushes {
		return struct {
			chained
			pusher
		}{w, p}
	}
	return w
}

// Unwrap is for [http.ResponseController]. It does not lead around the capture.
func (w *chainWriter) Unwrap() http.ResponseWriter { return w.guarded }

// look takes over an answer that was begun around this writer.
func (w *chainWriter) look() {
	if w.written || !w.ResponseWriter.Written() {
		return
	}
	w.written = true
	w.status, w.size = statusOf(w.ResponseWriter), w.ResponseWriter.Size()
	w.guarded.WriteHeader(w.status)
	w.capture.Partial()
}

func (w *chainWriter) Header() http.Header { return w.guarded.Header() }

func (w *chainWriter) Status() int {
	w.look()
	return w.status
}

func (w *chainWriter) Size() int {
	w.look()
	return w.size
}

func (w *chainWriter) Written() bool {
	w.look()
	return w.written
}

// WriteHeader takes the status of the answer unless that has begun.
func (w *chainWriter) WriteHeader(status int) {
	if status <= 0 || w.Written() {
		return
	}
	w.status = status
	if w.early {
		w.ResponseWriter.WriteHeader(status) // for what goes around this writer
	}
}

func (w *chainWriter) WriteHeaderNow() {
	if !w.Written() {
		w.begin()
		w.guarded.WriteHeader(w.status)
	}
}

// begin notes that the answer has begun here.
func (w *chainWriter) begin() { w.written, w.size = true, max(w.size, 0) }

func (w *chainWriter) Write(p []byte) (int, error) {
	w.WriteHeaderNow()
	n, err := w.guarded.Write(p)
	w.size += n
	return n, err
}

func (w *chainWriter) WriteString(s string) (int, error) {
	w.WriteHeaderNow()
	n, err := io.WriteString(w.guarded, s)
	w.size += n
	return n, err
}

// ReadFrom writes the content of src, by sendfile where the real writer does so.
func (w *chainWriter) ReadFrom(src io.Reader) (int64, error) {
	w.WriteHeaderNow()
	n, err := io.Copy(w.guarded, src)
	w.size += int(n)
	return n, err
}

func (w *chainWriter) Flush() {
	w.WriteHeaderNow()
	_ = w.capture.FlushError()
}

func (w *chainWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if !w.Written() {
		w.begin()
	}
	return w.capture.Hijack()
}

// ended tells the guard of a chain that has returned and reported that many errors. With errors and nothing written, a
// middleware around the guard will answer.
func (w *chainWriter) ended(c *gin.Context, errors int) {
	if !w.Written() {
		w.capture.Ended(w.status, w.status != w.initial, errors > 0)
		return
	}
	// After c.AbortWithError the renderers around the guard still add a body.
	if w.passedBy(c) || errors > 0 && w.size == 0 {
		w.capture.Partial()
	}
}

// passedBy reports whether a part of the answer was written around this writer, although it was begun here: by gin's
// HandleContext, which puts gin's own writer in the place of all others. With a detour that is known more exactly.
func (w *chainWriter) passedBy(c *gin.Context) bool {
	if w.detours {
		return false
	}
	return w.capture.Held() && w.ResponseWriter.Written() || isGinsOwn(c.Writer)
}
