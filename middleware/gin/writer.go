package ginlock

import (
	"net/http"
	"reflect"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/middleware/internal/writer"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// The chain behind a guard answers to a writer of gin's own, which knows the status before it is sent, and what has been written.
// It is the one that came in, or a new one in front of a writer of somebody else. While the answer is captured, gin's own writer
// writes to the capture in place of what is below it. So what HandleContext answers is captured too: gin's HandleContext puts
// gin's own writer in the place of all others.

// field is the name of the exported field of gin's own writer that has the writer below.
const field = "ResponseWriter"

// blank is a writer of gin's own before the answer has begun.
var blank = reflect.ValueOf(gin.CreateTestContextOnly(nil, new(gin.Engine)).Writer)

// isGinsOwn reports whether w is a writer that gin has made.
func isGinsOwn(w gin.ResponseWriter) bool { return reflect.TypeOf(w) == blank.Type() }

// belowOf returns what is below gin's own writer, and another writer itself.
func belowOf(w gin.ResponseWriter) http.ResponseWriter {
	if isGinsOwn(w) {
		return w.(interface{ Unwrap() http.ResponseWriter }).Unwrap()
	}
	return w
}

// front stands between the guard and the writer of the chain.
type front struct {
	writer.Forward // to real, or to what is below gin's own writer if that has counted the answer already
	c              *gin.Context
	real           gin.ResponseWriter // as it came
	own            gin.ResponseWriter // gin's own, to which the chain answers
	chain          gin.ResponseWriter // the writer of the chain: own, or what hides it
	cover          *cover             // which hides it; nil if own came in
	aborted        bool               // before the guard
	begun          bool               // the answer, before the chain
	before         reflect.Value      // own before the chain, if its answer is captured
}

func newFront(c *gin.Context) writer.Full {
	f := &front{Forward: writer.Forward{ResponseWriter: c.Writer}, c: c, real: c.Writer, chain: c.Writer, aborted: c.IsAborted()}
	if outer, nested := c.Writer.(interface{ covers() *cover }); nested {
		f.cover = outer.covers()
		f.own = f.cover.ResponseWriter
	} else if f.own = c.Writer; !isGinsOwn(f.own) {
		f.uncover()
	}
	c.Writer = f.chain
	return f
}

// uncover makes a writer of gin's own in front of a foreign one.
func (f *front) uncover() {
	own := reflect.New(blank.Type().Elem())
	own.Elem().Set(blank.Elem())
	own.Elem().FieldByName(field).Set(reflect.ValueOf(f.real))
	f.own = own.Interface().(gin.ResponseWriter)
	f.own.WriteHeader(statusOf(f.real))
	if f.real.Written() {
		f.own.WriteHeaderNow()
	}
	f.cover = &cover{ResponseWriter: f.own, real: f.real}
	f.chain = f.cover
	if p, pushes := f.real.(http.Pusher); pushes {
		f.chain = struct {
			*cover
			pusher
		}{f.cover, p}
	}
}

// statusOf returns the status that a writer would send. That of a writer which buffers may be 0 until there is another.
func statusOf(w gin.ResponseWriter) int {
	if status := w.Status(); status != 0 {
		return status
	}
	return http.StatusOK
}

type pusher interface{ http.Pusher }

// cover is gin's own writer in front of a writer of somebody else, whose status is set as soon as without the guard.
type cover struct {
	gin.ResponseWriter // gin's own
	real               gin.ResponseWriter
	captured           bool // what is written does not get there
}

func (w *cover) covers() *cover { return w }

// Unwrap is for [http.ResponseController]. It does not lead around a capture.
func (w *cover) Unwrap() http.ResponseWriter { return belowOf(w.ResponseWriter) }

func (w *cover) Pusher() http.Pusher { return w.real.Pusher() }

func (w *cover) WriteHeader(status int) {
	w.ResponseWriter.WriteHeader(status)
	if !w.captured {
		w.real.WriteHeader(status)
	}
}

func (w *cover) WriteHeaderNow() {
	begun := w.Written()
	w.ResponseWriter.WriteHeaderNow()
	if !begun && !w.captured {
		w.real.WriteHeaderNow()
	}
}

// Answered reports whether what limits the body has answered while it was read, as gin-contrib/size does.
func (f *front) Answered() bool {
	f.c.Writer = f.real
	return !f.aborted && f.c.IsAborted() && f.own.Written()
}

// Refused aborts the chain, and puts the conflict into c.Errors. With the problem as its meta data, the JSON of c.Errors is the
// problem.
func (f *front) Refused(err error) {
	conflict, _ := err.(*httplock.Conflict)
	f.c.Abort()
	_ = f.c.Error(public{conflict}).SetType(gin.ErrorTypePublic).SetMeta(conflict.Problem())
}

// Abandoned has gin's own writer forget an answer that nobody gets.
func (f *front) Abandoned() {
	if f.before.IsValid() {
		reflect.ValueOf(f.own).Elem().Set(f.before)
		f.ResponseWriter, f.begun, f.before = f.real, false, reflect.Value{}
	}
}

// WriteHeader ignores a second status, as gin's own writer does.
func (f *front) WriteHeader(status int) {
	if !f.begun {
		f.ResponseWriter.WriteHeader(status)
	}
}

// WriteHeaderNow is for an answer without a body.
func (f *front) WriteHeaderNow() {
	if w, waits := f.ResponseWriter.(interface{ WriteHeaderNow() }); waits {
		w.WriteHeaderNow()
	}
}

// serve calls next with a writer of gin's own, and reports to the guard how the chain has ended.
func (f *front) serve(w http.ResponseWriter, next func(*gin.Context) error) {
	c, answer := f.c, writer.Behind(w).(writer.Answer)
	status, begun, errors := f.own.Status(), f.own.Written(), len(c.Errors)
	c.Writer = f.chain
	defer func() { c.Writer = f.real }()
	capture, captures := answer.(writer.Capture)
	if captures {
		defer f.divert(w)()
	}
	_ = next(c)
	failed := len(c.Errors) > errors
	switch passed := c.Writer != f.own && isGinsOwn(c.Writer); {
	case captures && !begun && !f.own.Written() && f.around(): // by HandleContext
		w.WriteHeader(statusOf(f.cover.real))
		capture.Partial()
	case !captures, !f.own.Written():
		answer.Ended(f.own.Status(), f.own.Written() || f.own.Status() != status, failed && !f.own.Written())
	case passed, f.around() && capture.Held(), failed && f.own.Size() == 0:
		// HandleContext has answered, with gin's own writer behind a foreign one. After c.AbortWithError the renderers
		// around the guard still add a body.
		capture.Partial()
	}
}

// around reports whether an answer has begun on a writer of somebody else.
func (f *front) around() bool { return f.cover != nil && f.cover.real.Written() }

// divert has gin's own writer write to a capture's, until the result is called.
func (f *front) divert(w http.ResponseWriter) (end func()) {
	own := reflect.ValueOf(f.own).Elem()
	f.before = reflect.New(own.Type()).Elem()
	f.before.Set(own)
	f.begun = f.own.Written()
	f.ResponseWriter = belowOf(f.own)
	own.FieldByName(field).Set(reflect.ValueOf(w))
	outer := f.cover != nil && f.cover.captured
	if f.cover != nil {
		f.cover.captured = true
	}
	if f.begun { // by a middleware around the guard, whose status holds
		w.WriteHeader(f.own.Status())
	}
	return func() {
		own.FieldByName(field).Set(f.before.FieldByName(field))
		if f.cover != nil {
			f.cover.captured = outer
		}
		if !f.own.Written() {
			f.ResponseWriter = f.real
		}
	}
}
