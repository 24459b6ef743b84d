package ginlock

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/internal/ginroute"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/middleware/internal/hosted"
	"github.com/holdfast-go/holdfast/middleware/internal/writer"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// framework is gin for the guards.
var framework = hosted.Framework[*gin.Context]{
	Request:    func(c *gin.Context) *http.Request { return c.Request },
	SetRequest: func(c *gin.Context, r *http.Request) { c.Request = r },
	Writer:     func(c *gin.Context) http.ResponseWriter { return belowOf(c.Writer) },
	Pattern: func(c *gin.Context) string {
		if c.FullPath() == "" {
			return ""
		}
		return ginroute.Pattern(c.FullPath())
	},
	PathValues: func(c *gin.Context, set func(name, value string)) {
		for _, param := range c.Params {
			value := param.Value
			if strings.HasSuffix(c.FullPath(), "/*"+param.Key) {
				// The slash belongs to the route for net/http. The same file has the same lock there.
				value = strings.TrimPrefix(value, "/")
			}
			set(param.Key, value)
		}
	},
	Prepare: restoreBody,
	Decoded: true, // unless UseRawPath is set
	Value: func(c *gin.Context, key any) any {
		if name, ok := key.(string); ok {
			value, _ := c.Get(name)
			return value
		}
		return nil
	},
	Serve: func(_ *gin.Context, w http.ResponseWriter, around writer.Full, next func(*gin.Context) error) (error, bool) {
		around.(*front).serve(w, next)
		return nil, false
	},
	Front:     newFront,
	Unguarded: func(*gin.Context) error { return nil }, // and gin calls what comes next
	Stop:      (*gin.Context).Abort,
}

// next calls the rest of the chain, for which c has the values of the context of its request.
func next(c *gin.Context) error {
	outer, _ := c.Get(seal.ContextKey) // of a guard around this one
	defer c.Set(seal.ContextKey, outer)
	c.Set(seal.ContextKey, c.Request.Context())
	c.Next()
	return nil
}

// boundBody is a body that ShouldBindBodyWith has read in front of the guard. If nothing is left of it, it has what gin
// has kept for the next ShouldBindBodyWith. So the guard compares that, and the handler may read it again.
type boundBody struct {
	io.ReadCloser
	kept *bytes.Reader
	left bool // a middleware has put a body back, which comes first
}

// restoreBody has the body of r continue with what gin has kept of it, if it was read by ShouldBindBodyWith.
func restoreBody(c *gin.Context, r *http.Request) {
	value, _ := c.Get(gin.BodyBytesKey)
	if kept, _ := value.([]byte); len(kept) > 0 && r.Body != nil {
		r.Body = &boundBody{ReadCloser: r.Body, kept: bytes.NewReader(kept)}
	}
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

// Context returns the gin.Context of the request that a guard hands to a key function, for what a request cannot say:
//
//	import (
//		ginlock "github.com/holdfast-go/holdfast/middleware/gin"
//		httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
//	)
//
//	user := httplock.ByPrincipal(func(r *http.Request) (string, error) {
//		return ginlock.Context(r).MustGet("session").(*session).Account.Number, nil
//	})
//
// It returns nil for any other request, and once the key function has returned, because gin uses its contexts again.
//
// In the request of the key function the Pattern is c.FullPath in the form of http.ServeMux, "POST /cart/{id}" for "/cart/:id".
// Its path values are gin's parameters, and its context also has the values of the gin.Context with a string for a key. For a
// route that ends in "/*rest" the path of the request counts.
func Context(r *http.Request) *gin.Context { return hosted.Context[*gin.Context](r) }

// ByClientIP identifies requests by the address of the client as c.ClientIP returns it: an IPv4 address or the /64
// network of an IPv6 address. Many clients may share one, so prefer the logged-in user: [httplock.ByContext].
//
// Call SetTrustedProxies on the engine, with nil if there is no proxy in front of it. By default gin trusts every
// client. A client that sends its own X-Forwarded-For header gets any address, and with it the lock of another client,
// or one that no other client asks for.
func ByClientIP() httplock.KeyFunc {
	return hosted.ByClientIP((*gin.Context).ClientIP, "ginlock.ByClientIP")
}
