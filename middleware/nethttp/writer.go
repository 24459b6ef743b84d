package httplock

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast/middleware"
)

// captureWriter is the handler's writer while its answer is captured; the handler gets it as [exposed] makes
// it. It has no Unwrap: [http.ResponseController] would reach around it, and the client would get another
// status than the record.
//
// One thing of net/http's writer is lost on all that wrap it: [http.MaxBytesReader] no longer closes the
// connection of a client that sends too much. A guard has read the body under its own limit before.
type captureWriter struct {
	real    http.ResponseWriter
	capture *middleware.Capture
}

// newCapture captures the answer to r, which will be sent to w: see [middleware.NewCapture].
func newCapture(w http.ResponseWriter, r *http.Request, buffer int, record bool) *captureWriter {
	return &captureWriter{real: w, capture: middleware.NewCapture(w, r.Method, buffer, record)}
}

// exposed returns the writer with the optional methods of the real one. A handler may ask for them by a type
// assertion, so what is not there must not seem to be.
func (c *captureWriter) exposed() http.ResponseWriter {
	flush, hijack := c.capture.CanFlush(), c.capture.CanHijack()
	switch {
	case flush && hijack:
		return struct {
			*captureWriter
			flusher
			hijacker
		}{c, flusher{c.capture}, hijacker{c.capture}}
	case flush:
		return struct {
			*captureWriter
			flusher
		}{c, flusher{c.capture}}
	case hijack:
		return struct {
			*captureWriter
			hijacker
		}{c, hijacker{c.capture}}
	}
	return c
}

func (c *captureWriter) Header() http.Header                       { return c.capture.Header() }
func (c *captureWriter) WriteHeader(status int)                    { c.capture.WriteHeader(status) }
func (c *captureWriter) Write(p []byte) (int, error)               { return c.capture.Write(p) }
func (c *captureWriter) WriteString(s string) (int, error)         { return c.capture.WriteString(s) }
func (c *captureWriter) ReadFrom(src io.Reader) (n int64, e error) { return c.capture.ReadFrom(src) }

// SetReadDeadline, SetWriteDeadline and EnableFullDuplex are what [http.ResponseController] looks for.
func (c *captureWriter) SetReadDeadline(deadline time.Time) error {
	return http.NewResponseController(c.real).SetReadDeadline(deadline)
}

func (c *captureWriter) SetWriteDeadline(deadline time.Time) error {
	return http.NewResponseController(c.real).SetWriteDeadline(deadline)
}

func (c *captureWriter) EnableFullDuplex() error {
	return http.NewResponseController(c.real).EnableFullDuplex()
}

// Push is always there: [http.Pusher] says by its error that it is not supported.
func (c *captureWriter) Push(target string, opts *http.PushOptions) error {
	if p, ok := c.real.(http.Pusher); ok {
		return p.Push(target, opts)
	}
	return http.ErrNotSupported
}

// Captured is for guards inside this one, which look for the writer that came to the outermost one.
func (c *captureWriter) Captured() *middleware.Capture { return c.capture }

// send sends what was held back. A client that is gone has no need of it, so nobody is told of an error.
func (c *captureWriter) send() { _ = c.capture.Send() }

// abandon is for a handler that did not return normally.
func (c *captureWriter) abandon() { c.capture.Abandon() }

// response returns what to record, when the handler has returned.
func (c *captureWriter) response() *middleware.Response { return c.capture.Response() }

type flusher struct{ capture *middleware.Capture }

func (f flusher) Flush()            { _ = f.capture.Flush() }
func (f flusher) FlushError() error { return f.capture.Flush() }

type hijacker struct{ capture *middleware.Capture }

func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) { return h.capture.Hijack() }
