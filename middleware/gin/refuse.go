package ginlock

import (
	"maps"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// RefusalHandler answers a refused request. The chain is already aborted, and the conflict is in c.Errors. A handler
// that neither writes nor sets another status, from 200 on, has not answered: with a further error in c.Errors the guard
// sets the status of the conflict for a renderer around it, and otherwise it calls [Refuse]. For an empty 200, call
// c.Writer.WriteHeaderNow.
type RefusalHandler func(c *gin.Context, conflict *httplock.Conflict)

// Refuse answers a refused request with the problem of the conflict. It is the default [RefusalHandler].
func Refuse(c *gin.Context, conflict *httplock.Conflict) {
	problem := conflict.Problem().For(c.Writer.Header())
	maps.Copy(c.Writer.Header(), problem.Header())
	c.Status(problem.Status)
	_, _ = c.Writer.Write(problem.Body()) // nobody is left to tell of a client that does not read its answer
}

// statusOnly leaves the answer to a middleware around the guard.
func statusOnly(c *gin.Context, conflict *httplock.Conflict) { c.Status(conflict.Status) }

func refuse(c *gin.Context, conflict *httplock.Conflict, handler RefusalHandler) {
	c.Abort()
	// With the problem as its meta data, the JSON of c.Errors is the problem.
	_ = c.Error(public{conflict}).SetType(gin.ErrorTypePublic).SetMeta(conflict.Problem())
	if conflict.Code == httpguard.CodeClientGone {
		// For the log. It also keeps gin from answering 200, which a client that has merely closed its sending
		// side would take for success.
		handler = statusOnly
	}
	status := conflict.Status
	begun := c.Writer.Written() // by a handler between this guard and the one around it, whose answer counts
	answer := watch(c)
	defer func() { c.Writer = answer.real }()
	before, errors := answer.status(), len(c.Errors)
	handler(c, conflict)
	switch now := answer.status(); {
	case answer.begun(), now >= http.StatusMultipleChoices: // or a renderer of c.Errors will write
	case now != before && now >= http.StatusOK: // 1xx is no answer: net/http sends 200 after it
	case len(c.Errors) > errors: // for a renderer, which may set no status
		statusOnly(c, conflict)
	default:
		Refuse(c, conflict)
	}
	if !begun {
		status = answer.status()
	}
	httpguard.RefusalSent(c.Request.Context(), status)
}

// public is a conflict for gin's public errors, whose text many services show to their clients. The cause, an
// address of Redis for instance, is for logs: only who unwraps the conflict gets it.
type public struct{ conflict *httplock.Conflict }

func (p public) Error() string { return "holdfast: request refused: " + p.conflict.Code }

func (p public) Unwrap() error { return p.conflict }
