package gin_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/core"
	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// recording are the guards that keep records, set up so that both replay to a second request of the same user with the
// same Idempotency-Key.
func recording(locks *core.Client, opts ...httplock.Option) map[string]gin.HandlerFunc {
	user := httplock.ByHeader("X-User")
	opts = patiently(opts...)
	replaying := append([]httplock.Option{httplock.WithReplay()}, opts...)
	return map[string]gin.HandlerFunc{
		"Once":       ginlock.Once(locks, httplock.Keys(user, httplock.ByHeader("Idempotency-Key")), replaying...),
		"Idempotent": ginlock.Idempotent(locks, user, opts...),
	}
}

// patiently returns options for a machine that has other things to do.
func patiently(opts ...httplock.Option) []httplock.Option {
	return append([]httplock.Option{unhurried, httplock.WithFinishTimeout(patience)}, opts...)
}

// order sends a request of the test, which is its own user, with that Idempotency-Key, and a short body.
func order(t testing.TB, srv *httptest.Server, key string, edit ...func(*http.Request)) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL+"/", strings.NewReader(`{"item":"pen"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-User", t.Name())
	req.Header.Set("Idempotency-Key", key)
	for _, change := range edit {
		change(req)
	}
	return send(srv, req)
}

// replayed reports whether an answer says that it is a recorded one.
func (a answer) replayed() bool { return a.header.Get("Idempotency-Replayed") == "true" }

func (a answer) wantReplay(t testing.TB, status int, body string) {
	t.Helper()
	a.want(t, status)
	if !a.replayed() || a.body != body {
		t.Errorf("replayed %v, body %q, want %q replayed", a.replayed(), a.body, body)
	}
}

// wantRun is for the answer of a run.
func (a answer) wantRun(t testing.TB, status int) {
	t.Helper()
	a.want(t, status)
	if a.replayed() {
		t.Errorf("a replay of %d, want a run", status)
	}
}

func (a answer) wantRefusal(t testing.TB, status int, code string) {
	t.Helper()
	a.want(t, status)
	if p := a.problem(t); p.Code != code {
		t.Errorf("code %s, want %s", p.Code, code)
	}
}

// failing is a handler whose first run fails; others create something.
func failing(fail gin.HandlerFunc) gin.HandlerFunc {
	first := true
	return func(c *gin.Context) {
		c.Header("X-Handler", "1")
		if first {
			first = false
			fail(c)
			return
		}
		c.String(http.StatusCreated, "created")
	}
}

// seen is what a middleware sees of an answer when the chain behind it has run.
type seen struct {
	status, size int
	written      bool
}

// look returns a middleware that sends what it sees.
func look() (gin.HandlerFunc, <-chan seen) {
	sees := make(chan seen, 10)
	return func(c *gin.Context) {
		c.Next()
		sees <- seen{c.Writer.Status(), c.Writer.Size(), c.Writer.Written()}
	}, sees
}
