package httplock

import (
	"bufio"
	"io"
	"net"
	"net/http"

	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
	"github.com/holdfast-go/holdfast/middleware/internal/writer"
)

// captureWriter is the handler's writer while its answer is captured. The handler gets it as [captureWriter.exposed]
// makes it, whose Unwrap does not lead to the real writer: [http.ResponseController] would reach around the capture, and
// the client would get another status than the record.
//
// One thing of net/http's writer is lost on all that wrap it: [http.MaxBytesReader] no longer closes the
// connection of a client that sends too much. A guard has read the body under its own limit before.
type captureWriter struct {
	writer.Forward // to the real writer
	capture        *httpguard.Capture
}

// newCapture captures the answer to r, which will be sent to w: see [httpguard.NewCapture].
func newCapture(w http.ResponseWriter, r *http.Request, buffer int, record bool) *captureWriter {
	return &captureWriter{writer.Forward{ResponseWriter: w}, httpguard.NewCapture(w, r.Method, buffer, record)}
}

// exposed returns the writer with the optional methods of the real one.
func (c *captureWriter) exposed() http.ResponseWriter { return writer.Expose(c, c.ResponseWriter) }

func (c *captureWriter) Header() http.Header                          { return c.capture.Header() }
func (c *captureWriter) WriteHeader(status int)                       { c.capture.WriteHeader(status) }
func (c *captureWriter) Write(p []byte) (int, error)                  { return c.capture.Write(p) }
func (c *captureWriter) WriteString(s string) (int, error)            { return c.capture.WriteString(s) }
func (c *captureWriter) ReadFrom(src io.Reader) (int64, error)        { return c.capture.ReadFrom(src) }
func (c *captureWriter) Flush()                                       { _ = c.capture.Flush() }
func (c *captureWriter) FlushError() error                            { return c.capture.Flush() }
func (c *captureWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) { return c.capture.Hijack() }

// For frameworks with writers of their own: see [writer.Capture].

func (c *captureWriter) Held() bool  { return c.capture.Held() }
func (c *captureWriter) Pass() error { return c.capture.Pass() }
func (c *captureWriter) Partial()    { c.capture.Partial() }

func (c *captureWriter) Ended(status int, answered, failed bool) {
	c.capture.Ended(status, answered, failed)
}

// send sends what was held back. A client that is gone has no need of it, so nobody is told of an error.
func (c *captureWriter) send() { _ = c.capture.Send() }

// abandon is for a handler that did not return normally.
func (c *captureWriter) abandon() { c.capture.Abandon() }

// response returns what to record, when the handler has returned.
func (c *captureWriter) response() *httpguard.Response { return c.capture.Response() }
