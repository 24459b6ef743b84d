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
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// detour stands below gin's own writer while a chain runs. gin's HandleContext puts its own writer in the place of all
// others, so the handlers that it runs write around the guard. The detour notices: it first sends what the guard has held
// back, so that the order of the bytes and the status are those without the guard.
//
// It can be there only if the guard's real writer is gin's own, whose exported field ResponseWriter has what is below. If
// a middleware around the guard has replaced that, the guard only knows afterwards that it has not seen everything.
type detour struct {
	writer.Forward                  // to what is below gin's own writer
	captures       []writer.Capture // that answer through gin's own writer, the outermost first
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

// watch has gin's own writer watched for a capture, and returns what to call when the chain has ended. It tells the guards further
// in of the detour by the context of the request.
func (f *front) watch(capture writer.Capture) (end func()) {
	r := f.c.Request
	field, found := below(f.real)
	if !found {
		d, _ := r.Context().Value(detourKey{}).(*detour)
		if d == nil {
			return func() {}
		}
		d.captures = append(d.captures, capture)
		return func() {
			if i := slices.Index(d.captures, capture); i >= 0 {
				d.captures = slices.Delete(d.captures, i, i+1)
			}
		}
	}
	under, _ := field.Interface().(http.ResponseWriter)
	f.detour = &detour{
		Forward: writer.Forward{ResponseWriter: under}, captures: []writer.Capture{capture}, begun: f.real.Written(),
	}
	field.Set(reflect.ValueOf(writer.ExposeTransparent(f.detour, under)))
	f.c.Request = r.WithContext(context.WithValue(r.Context(), detourKey{}, f.detour))
	return func() {
		f.detour = nil
		field.Set(reflect.ValueOf(under))
	}
}

// release sends what the guards have held back: the innermost one first, because the others hold what it lets go.
func (d *detour) release() {
	for _, w := range slices.Backward(d.captures) {
		_ = w.Pass() // what fails here fails for the next writes too
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
		w.Partial()
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

// front stands between the guard and the writer of the chain. What the guard writes is no detour.
type front struct {
	writer.Forward // to real
	real           gin.ResponseWriter
	c              *gin.Context
	aborted        bool    // before the guard
	answer         watched // while the guard makes the key and reads the body
	detour         *detour // while a chain runs
}

func newFront(c *gin.Context) writer.Full {
	real := c.Writer
	return &front{
		Forward: writer.Forward{ResponseWriter: real}, real: real, c: c, aborted: c.IsAborted(), answer: watch(c),
	}
}

// Answered reports whether what limits the body has answered while it was read, as gin-contrib/size does.
func (f *front) Answered() bool {
	f.c.Writer = f.real
	return !f.aborted && f.c.IsAborted() && f.answer.begun()
}

// Refused aborts the chain, and puts the conflict into c.Errors. With the problem as its meta data, the JSON of c.Errors is the
// problem.
func (f *front) Refused(err error) {
	conflict, _ := err.(*httplock.Conflict)
	f.c.Abort()
	_ = f.c.Error(public{conflict}).SetType(gin.ErrorTypePublic).SetMeta(conflict.Problem())
}

// pass marks a call. The caller must call the result when that has returned.
func (f *front) pass() (returned func()) {
	d := f.detour
	if d == nil {
		return func() {}
	}
	d.passing++
	return func() { d.passing-- }
}

func (f *front) Header() http.Header {
	defer f.pass()()
	return f.real.Header()
}

func (f *front) WriteHeader(status int) {
	defer f.pass()()
	if f.detour != nil && f.detour.late {
		f.detour.status = status
		return
	}
	f.real.WriteHeader(status)
}

// WriteHeaderNow is for an answer without a body.
func (f *front) WriteHeaderNow() {
	defer f.pass()()
	if f.detour != nil && f.detour.late {
		f.detour.begin()
	}
	f.real.WriteHeaderNow()
}

func (f *front) Write(b []byte) (int, error) {
	defer f.pass()()
	return f.real.Write(b)
}

func (f *front) WriteString(s string) (int, error) {
	defer f.pass()()
	return f.real.WriteString(s)
}

func (f *front) ReadFrom(src io.Reader) (int64, error) {
	defer f.pass()()
	return f.Forward.ReadFrom(src)
}

func (f *front) Flush() { _ = f.FlushError() }

func (f *front) FlushError() error {
	defer f.pass()()
	return f.Forward.FlushError()
}

func (f *front) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	defer f.pass()()
	return f.Forward.Hijack()
}
