package ginlock

import (
	"maps"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/middleware/internal/hosted"
	"github.com/holdfast-go/holdfast/middleware/internal/writer"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// RefusalHandler answers a refused request. The chain is already aborted, and the conflict is in c.Errors. A handler
// that neither writes nor sets another status, from 200 on, has not answered: with a further error in c.Errors the guard
// sets the status of the conflict for a renderer around it, and otherwise it calls [Refuse]. For an empty 200, call
// c.Writer.WriteHeaderNow.
type RefusalHandler func(c *gin.Context, conflict *httplock.Conflict)

// WithRefusalHandler sets the function that answers every refused request: 400, 401, 409, 503 and all other codes,
// except requests whose client left before they ran. It also answers in place of a chain that has not answered because
// its context was over: 503 not-answered, or what a retry gets. It may change the conflict and call [Refuse] for the
// writing. If it does nothing, the guard calls Refuse: see [RefusalHandler]. Of this option and [ErrorsOnly] the last
// one counts. Defaults to Refuse.
func WithRefusalHandler(handler RefusalHandler) httplock.Option {
	if handler == nil {
		return httplock.WithRefusalHandler(nil)
	}
	return httplock.WithRefusalHandler(func(w http.ResponseWriter, r *http.Request, conflict *httplock.Conflict) {
		_, around, found := hosted.Visitor[*gin.Context](r)
		if !found { // a guard of net/http
			httplock.Refuse(w, r, conflict)
			return
		}
		around.(*front).refuse(w, conflict, handler)
	})
}

// ErrorsOnly leaves the answer to refused requests to the service's own renderer of c.Errors, a middleware around the
// guard. The guard sets the status and writes nothing; gin sends the status without a body if no middleware writes
// one. Of this option and [WithRefusalHandler] the last one counts. Defaults to answering with a problem.
func ErrorsOnly() httplock.Option { return WithRefusalHandler(statusOnly) }

// Refuse answers a refused request with the problem of the conflict. It is the default [RefusalHandler].
func Refuse(c *gin.Context, conflict *httplock.Conflict) {
	problem := conflict.Problem().For(c.Writer.Header())
	maps.Copy(c.Writer.Header(), problem.Header())
	c.Status(problem.Status)
	_, _ = c.Writer.Write(problem.Body()) // an error means that the client does not read its response
}

// statusOnly leaves the answer to a middleware around the guard.
func statusOnly(c *gin.Context, conflict *httplock.Conflict) { c.Status(conflict.Status) }

// refuse has a handler answer a refused request, and answers if it has not.
func (f *front) refuse(w http.ResponseWriter, conflict *httplock.Conflict, handler RefusalHandler) {
	c, status := f.c, conflict.Status
	begun := f.own.Written() // by a handler between this guard and the one around it, whose answer counts
	before, errors := f.own.Status(), len(c.Errors)
	c.Writer = f.chain
	defer func() { c.Writer = f.real }()
	handler(c, conflict)
	switch now := f.own.Status(); {
	case f.own.Written(), now >= http.StatusMultipleChoices: // or a renderer of c.Errors will write
	case now != before && now >= http.StatusOK: // 1xx is no answer: net/http sends 200 after it
	case len(c.Errors) > errors: // for a renderer, which may set no status
		statusOnly(c, conflict)
	default:
		Refuse(c, conflict)
	}
	if !begun {
		status = f.own.Status()
	}
	writer.Behind(w).(writer.Answer).Ended(status, true, false)
}

// public is a conflict for gin's public errors, whose text many services show to their clients. The cause, an
// address of Redis for instance, is for logs: only who unwraps the conflict gets it.
type public struct{ conflict *httplock.Conflict }

func (p public) Error() string { return "holdfast: request refused: " + p.conflict.Code }

func (p public) Unwrap() error { return p.conflict }
