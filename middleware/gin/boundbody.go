package ginlock

import (
	"bytes"
	"io"

	"github.com/gin-gonic/gin"
)

// boundBody is a body that ShouldBindBodyWith has read in front of the guard. If nothing is left of it, it has what gin
// has kept for the next ShouldBindBodyWith. So the guard compares that, and the handler may read it again.
type boundBody struct {
	io.ReadCloser
	kept *bytes.Reader
	left bool // a middleware has put a body back, which comes first
}

// restoreBody has the body of the request of c continue with what gin has kept of it, if it was read by ShouldBindBodyWith.
func restoreBody(c *gin.Context) {
	value, _ := c.Get(gin.BodyBytesKey)
	kept, _ := value.([]byte)
	if len(kept) == 0 || c.Request.Body == nil {
		return
	}
	c.Request.Body = &boundBody{ReadCloser: c.Request.Body, kept: bytes.NewReader(kept)}
}

// Read reads what is left of the body, or what gin has kept of it.
func (b *boundBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.left = b.left || n > 0
	if err == io.EOF && !b.left {
		return b.kept.Read(p)
	}
	return n, err
}
