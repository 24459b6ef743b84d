package ginlock

import (
	"context"
	"io"

	"github.com/gin-gonic/gin"
)

// ContextKey is where a guarded request has the context of its run in gin's own store, for [Degraded] and
// [TokenFrom]. It is nil there once the guard is done.
const ContextKey = "github.com/holdfast-go/holdfast/middleware/gin"

// next runs the rest of the chain with that context and body. However it ends, the middlewares around the
// guard find their own request and writer again: the context of the run has ended by then.
func next(ctx context.Context, c *gin.Context, body io.ReadCloser) {
	request, writer := c.Request, c.Writer
	outer, _ := c.Get(ContextKey) // of a guard around this one
	defer func() {
		// net/http removes the files of a form that it finds in its own request only.
		if form := c.Request.MultipartForm; form != nil {
			request.MultipartForm = form
		}
		c.Request, c.Writer = request, writer
		c.Set(ContextKey, outer)
	}()
	c.Request = request.WithContext(ctx)
	c.Request.Body = body
	c.Set(ContextKey, ctx)
	c.Next()
}
