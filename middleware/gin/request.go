package ginlock

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/internal/ginroute"
	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
	"github.com/holdfast-go/holdfast/middleware/internal/request"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

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
func Context(r *http.Request) *gin.Context {
	if k, ok := r.Context().Value(ginKey{}).(*keyContext); ok {
		return k.gin.Load()
	}
	return nil
}

type ginKey struct{}

// keyContext is the context of the request for a key function. It has the values of a gin.Context too.
type keyContext struct {
	context.Context
	gin atomic.Pointer[gin.Context] // nil when the key function has returned
}

func (k *keyContext) Value(key any) any {
	if key == (ginKey{}) {
		return k
	}
	if name, ok := key.(string); ok {
		if c := k.gin.Load(); c != nil {
			if value, found := c.Get(name); found {
				return value
			}
		}
	}
	return k.Context.Value(key)
}

// keyOf calls the key function with a copy of the request, in which pattern, path values and context values are gin's. What
// the function reads of the body, it leaves in c.Request for the chain.
func keyOf(c *gin.Context, key httplock.KeyFunc) (httplock.Key, error) {
	inner := c.Request
	// gin matches decoded paths, unless UseRawPath is set.
	k := &keyContext{Context: httpguard.WithDecodedPaths(inner.Context())}
	k.gin.Store(c)
	r := requestOf(c, k)
	c.Request = r // so that a function which asks the gin.Context for the body takes it from the same request
	defer func() {
		k.gin.Store(nil)
		inner.Body, inner.ContentLength = r.Body, r.ContentLength
		inner.Form, inner.PostForm, inner.MultipartForm = r.Form, r.PostForm, r.MultipartForm
		c.Request = inner
	}()
	made, err := key(r)
	if c.FullPath() == "" && errors.Is(err, httplock.ErrNoRoute) {
		err = errUnknownPath
	}
	return made, err
}

// errUnknownPath is for what gin's NoRoute and NoMethod handle. A client causes it, so the guard must not log it as a
// mistake of the service.
var errUnknownPath = httpguard.KeyError(httplock.ErrKeyInvalid, "no route has this path and method")

// requestOf returns a copy of c.Request with gin's route.
func requestOf(c *gin.Context, ctx context.Context) *http.Request {
	r := request.Copy(c.Request, ctx)
	r.Pattern = patternOf(c)
	for _, param := range c.Params {
		value := param.Value
		if strings.HasSuffix(c.FullPath(), "/*"+param.Key) {
			// The slash belongs to the route for net/http. The same file has the same lock there.
			value = strings.TrimPrefix(value, "/")
		}
		r.SetPathValue(param.Key, value)
	}
	return r
}

// patternOf returns the route of the request in the form of [http.ServeMux], "POST /cart/{id}" for "/cart/:id"; "" if gin has
// found none.
func patternOf(c *gin.Context) string {
	if c.FullPath() == "" {
		return ""
	}
	return c.Request.Method + " " + ginroute.Pattern(c.FullPath())
}
