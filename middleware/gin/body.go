package ginlock

import (
	"io"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/middleware"
)

// buffer returns the body of the request, buffered if that is of use. What is known to be too large is left to
// the handler unread; a client that waits for 100 Continue then sends it only if the lock is granted.
//
// A body that was buffered whole is left for gin's ShouldBindBodyWith too, unless somebody has done that
// before: what is read here is then the rest of a body that was read already.
func buffer(c *gin.Context, limit int64) (io.ReadCloser, error) {
	r := c.Request
	switch {
	case r.Body == nil, r.Body == http.NoBody, limit == 0, r.ContentLength > limit:
		return r.Body, nil
	case r.Method == http.MethodConnect: // a tunnel, which both sides use at the same time
		return r.Body, nil
	}
	body, err := middleware.Buffer(r.Context(), r.Body, limit)
	if err != nil {
		return nil, err
	}
	if text, whole := body.Bytes(); whole {
		if _, there := c.Get(gin.BodyBytesKey); !there {
			c.Set(gin.BodyBytesKey, text)
		}
	}
	return body, nil
}
