package gin_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/core"
	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// A key of the body is made before the body is buffered, and leaves it to the handler.
func TestKeyOfTheBody(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	for name, test := range map[string]struct {
		key       httplock.KeyFunc
		mediaType string
		body      string
		status    int
	}{
		"JSON":         {httplock.ByJSON("/cart"), "application/json", `{"cart":7}`, http.StatusOK},
		"JSON, absent": {httplock.ByJSON("/cart"), "application/json", `{"order":7}`, http.StatusBadRequest},
		"form":         {httplock.ByForm("cart"), "application/x-www-form-urlencoded", "cart=7", http.StatusOK},
		"form, absent": {httplock.ByForm("cart"), "application/x-www-form-urlencoded", "order=7", http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			guard := ginlock.Exclusive(locks.Mutex, httplock.Keys(test.key, httplock.Constant(name)), patient)
			outer := func(c *gin.Context) {
				body := c.Request.Body
				c.Next()
				if c.Request.Body != body {
					t.Error("the body of the outer request was replaced")
				}
			}
			srv := serve(t, router(outer, guard, func(c *gin.Context) {
				if _, locked := core.TokenFrom(c.Request.Context()); !locked {
					t.Error("the handler runs without lock")
				}
				_, _ = io.Copy(c.Writer, c.Request.Body)
			}))
			a := postBody(t, srv, test.mediaType, test.body)
			a.want(t, test.status)
			if test.status == http.StatusOK && a.body != test.body {
				t.Errorf("the handler read %q, want %q", a.body, test.body)
			}
		})
	}
}

// A request that may come without key passes with the body in which the key was looked for.
func TestOptionalKey(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	guard := ginlock.Exclusive(locks.Mutex, httplock.ByJSON("/cart"), httplock.OptionalKey(), core.WithWait(patience))
	srv := serve(t, router(guard, func(c *gin.Context) {
		if _, locked := core.TokenFrom(c.Request.Context()); locked {
			t.Error("locked without key")
		}
		_, _ = io.Copy(c.Writer, c.Request.Body)
	}))
	const body = `{"order":7}`
	a := postBody(t, srv, "application/json", body)
	a.want(t, http.StatusOK)
	if a.body != body {
		t.Errorf("the handler read %q, want %q", a.body, body)
	}
}

// A trailer that was not announced reaches the handler, though net/http puts it into its own request.
func TestTrailerReachesTheHandler(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	guard := ginlock.Exclusive(locks.Mutex, cart(), core.WithWait(patience))
	srv := serve(t, router(guard, func(c *gin.Context) {
		_, _ = io.Copy(io.Discard, c.Request.Body)
		c.String(http.StatusOK, c.Request.Trailer.Get("X-Sum"))
	}))
	conn := dial(t, srv)
	write(t, conn, "POST /?cart=7 HTTP/1.1\r\nHost: x\r\nX-User: ada\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"+
		"3\r\npay\r\n0\r\nX-Sum: 42\r\n\r\n")
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.HasSuffix(string(answer), "42") {
		t.Errorf("answer %q, error %v, want the trailer in it", answer, err)
	}
}

func postBody(t *testing.T, srv *httptest.Server, mediaType, body string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", mediaType)
	return send(srv, req)
}
