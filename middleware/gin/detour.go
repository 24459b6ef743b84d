package ginlock

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"reflect"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/middleware/internal/writer"
)

// detour stands below gin's own writer while a chain runs. gin's HandleContext puts its own writer in the place of all
// others, so the handlers that it runs write around the guard. The detour notices: it first sends what the guard has held
// back, so that the order of the bytes and the status are those without the guard.
//
// It can be there only if the guard's real writer is gin's own, whose exported field ResponseWriter has what is below. If
// a middleware around the guard has replaced that, the guard only knows afterwards that it has not seen everything.
type detour struct {
	writer.Forward                  // to what is below gin's own writer
	captures       []*captureWriter // that answer through gin's own writer, the outermost first
	passing        int              // calls that come from the outermost of them, one within the other
	begun          bool             // the header was sent
	late           bool             // gin's own writer takes the answer for begun, with another status than the captured one
	status         int              // the captured one
}

type detourKey struct{}

var ginsOwn = reflect.TypeOf(new(gin.Context).Copy().Writer)

// isGinsOwn reports whether w is a writer that gin has made.
func isGinsOwn(w gin.ResponseWriter) bool { return reflect.TypeOf(w) == ginsOwn }

// below returns the field of gin's own writer that has the writer below, and false if w is another writer, or a version
// of gin has another field.
func below(w gin.ResponseWriter) (field reflect.Value, found bool) {
	if !isGinsOwn(w) || ginsOwn.Kind() != reflect.Pointer || ginsOwn.Elem().Kind() != reflect.Struct {
		return field, false
	}
	field = reflect.ValueOf(w).Elem().FieldByName("ResponseWriter")
	return field, field.IsValid() && field.CanSet() && field.Type() == reflect.TypeFor[http.ResponseWriter]()
}

// watch has gin's own writer watched, and returns the writer for the capture, and what to call in the end.
func (w *captureWriter) watch(c *gin.Context) (real gin.ResponseWriter, end func()) {
	field, found := below(c.Writer)
	if !found {
		d, _ := c.Request.Context().Value(detourKey{}).(*detour)
		if d == nil {
			return c.Writer, func() {}
		}
		d.captures = append(d.captures, w)
		return c.Writer, func() {
			if i := slices.Index(d.captures, w); i >= 0 {
				d.captures = slices.Delete(d.captures, i, i+1)
			}
		}
	}
	under, _ := field.Interface().(http.ResponseWriter)
	w.detour = &detour{
		Forward: writer.Forward{ResponseWriter: under}, captures: []*captureWriter{w}, begun: c.Writer.Written(),
	}
	field.Set(reflect.ValueOf(writer.ExposeTransparent(w.detour, under)))
	return passage{c.Writer, w.detour}, func() { field.Set(reflect.ValueOf(under)) }
}

// within returns the context for a chain, whose inner guards have to be known to the detour as well.
func (w *captureWriter) within(ctx context.Context) context.Context {
	if w.detour == nil {
		return ctx
	}
	return context.WithValue(ctx, detourKey{}, w.detour)
}

// release sends what the guards have held back: the innermost one first, because the others hold what it lets go.
func (d *detour) release() {
	for _, w := range slices.Backward(d.captures) {
		_ = w.capture.Pass() // what fails here fails for the next writes too
	}
}

// around is called before something is sent around the guards.
func (d *detour) around() {
	if d.passing > 0 {
		return
	}
	d.release()
	d.partial()
}

func (d *detour) partial() {
	for _, w := range d.captures {
		w.capture.Partial()
	}
}

// begin sends the captured status, if gin's own writer could not.
func (d *detour) begin() {
	if d.status != 0 && !d.begun {
		d.ResponseWriter.WriteHeader(d.status)
	}
	d.begun = true
}

// Header is called before a status or a byte is written around the guards: early enough for gin's own writer to get the
// captured status.
func (d *detour) Header() http.Header {
	if d.passing == 0 {
		d.release()
	}
	return d.ResponseWriter.Header()
}

func (d *detour) WriteHeader(status int) {
	if d.passing == 0 && !d.begun {
		d.late = true
		d.release()
		d.late = false
		if d.status != 0 {
			d.begin()
			return // as gin's own writer ignores a second status
		}
		d.partial()
	}
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		if d.begun {
			return
		}
		d.begun = true
	}
	d.ResponseWriter.WriteHeader(status)
}

func (d *detour) Write(p []byte) (int, error) {
	d.around()
	d.begin()
	return d.ResponseWriter.Write(p)
}

func (d *detour) WriteString(s string) (int, error) {
	d.around()
	d.begin()
	return d.Forward.WriteString(s)
}

func (d *detour) ReadFrom(src io.Reader) (int64, error) {
	d.around()
	d.begin()
	return d.Forward.ReadFrom(src)
}

func (d *detour) Flush() { _ = d.FlushError() }

func (d *detour) FlushError() error {
	d.around()
	d.begin()
	return d.Forward.FlushError()
}

func (d *detour) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	d.around()
	return d.Forward.Hijack()
}

// passage is gin's own writer for the outermost capture, whose calls are no detour.
type passage struct {
	gin.ResponseWriter
	detour *detour
}

// pass marks a call. The caller must call the result when that has returned.
func (p passage) pass() (returned func()) {
	p.detour.passing++
	return func() { p.detour.passing-- }
}

func (p passage) Header() http.Header {
	defer p.pass()()
	return p.ResponseWriter.Header()
}

func (p passage) WriteHeader(status int) {
	defer p.pass()()
	if p.detour.late {
		p.detour.status = status
		return
	}
	p.ResponseWriter.WriteHeader(status)
}

func (p passage) WriteHeaderNow() {
	defer p.pass()()
	if p.detour.late {
		p.detour.begin()
	}
	p.ResponseWriter.WriteHeaderNow()
}

func (p passage) Write(b []byte) (int, error) {
	defer p.pass()()
	return p.ResponseWriter.Write(b)
}

func (p passage) WriteString(s string) (int, error) {
	defer p.pass()()
	return p.ResponseWriter.WriteString(s)
}

func (p passage) Flush() {
	defer p.pass()()
	p.ResponseWriter.Flush()
}

func (p passage) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	defer p.pass()()
	return p.ResponseWriter.Hijack()
}

// Unwrap leads below gin's own writer, as that does.
func (p passage) Unwrap() http.ResponseWriter { return p.detour.ResponseWriter }
