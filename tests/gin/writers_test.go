package gin_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/core"
	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// sized has no negative size.
type sized struct{ gin.ResponseWriter }

func (w sized) Size() int { return max(0, w.ResponseWriter.Size()) }

// buffering is a writer as timeouts have one: it holds everything back, tells nothing of what was written, and has no status
// before one is set.
type buffering struct {
	gin.ResponseWriter
	header http.Header
	status int
	body   bytes.Buffer
	blank  bool // Status is the real writer's, as with gin-contrib/timeout
}

func (w *buffering) Header() http.Header { return w.header }

func (w *buffering) Size() int { return w.body.Len() }

func (w *buffering) WriteHeader(status int) { w.status = status }

func (w *buffering) WriteHeaderNow() {}

func (w *buffering) Write(p []byte) (int, error) { return w.body.Write(p) }

func (w *buffering) WriteString(s string) (int, error) { return w.body.WriteString(s) }

func (w *buffering) Status() int {
	if w.blank {
		return w.ResponseWriter.Status()
	}
	return w.status
}

// buffered and blank run the chain with such a writer.
func buffered(c *gin.Context) { buffer(c, false) }

func blank(c *gin.Context) { buffer(c, true) }

func buffer(c *gin.Context, blank bool) {
	real := c.Writer
	w := &buffering{ResponseWriter: real, header: http.Header{}, blank: blank}
	c.Writer = w
	c.Next()
	c.Writer = real
	for name, values := range w.header {
		real.Header()[name] = values
	}
	if w.status != 0 {
		real.WriteHeader(w.status)
	}
	_, _ = real.Write(w.body.Bytes())
}

func wrapped(wrap func(gin.ResponseWriter) gin.ResponseWriter) gin.HandlerFunc {
	return func(c *gin.Context) {
		real := c.Writer
		c.Writer = wrap(real)
		c.Next()
		c.Writer = real
	}
}

// foreign are middlewares around the guard with writers of their own.
func foreign() map[string]gin.HandlerFunc {
	return map[string]gin.HandlerFunc{
		"sized":    wrapped(func(w gin.ResponseWriter) gin.ResponseWriter { return sized{w} }),
		"buffered": buffered,
		"blank":    blank,
		"sized and buffered": func(c *gin.Context) {
			c.Writer = sized{c.Writer}
			buffered(c)
		},
	}
}

// TestStatusBehindAnotherWriter: the answer and the replay have the handler's status, whatever the writer around the guard
// tells of itself.
func TestStatusBehindAnotherWriter(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	for _, status := range []int{201, 303, 402, 500} {
		for kind, answer := range map[string]gin.HandlerFunc{
			"body":   func(c *gin.Context) { c.String(status, "answer") },
			"status": func(c *gin.Context) { c.Status(status) },
			"header": func(c *gin.Context) { c.AbortWithStatus(status) },
		} {
			for name, around := range foreign() {
				want := order(t, serve(t, router(around, answer)), "k")
				for guarded, guard := range recording(locks, httplock.WithCompletion(
					func(httplock.Handled) httplock.Disposition { return httplock.Completed })) {
					t.Run(fmt.Sprint(guarded, status, kind, name), func(t *testing.T) {
						t.Parallel()
						srv := serve(t, router(around, guard, answer))
						sameAnswer(t, order(t, srv, "k"), want)
						a := order(t, srv, "k")
						if a.status != want.status || a.body != want.body || !a.replayed() {
							t.Errorf("replay %d %q, %v, want %d %q", a.status, a.body, a.header, want.status, want.body)
						}
					})
				}
				t.Run(fmt.Sprint("Exclusive", status, kind, name), func(t *testing.T) {
					t.Parallel()
					guard := ginlock.Exclusive(locks.Mutex, httplock.Constant(t.Name()), patient)
					sameAnswer(t, order(t, serve(t, router(around, guard, answer)), "k"), want)
				})
			}
		}
	}
}

// TestNestedBehindAnotherWriter: both of two guards behind a writer of somebody else hold the answer back and record it whole, or the
// inner one does behind a lock.
func TestNestedBehindAnotherWriter(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	inner := httplock.Keys(httplock.ByHeader("X-User"), httplock.Constant("inner"))
	for name, around := range foreign() {
		for kind, outer := range map[string]gin.HandlerFunc{
			"Exclusive": ginlock.Exclusive(locks.Mutex, httplock.Constant(name), patient),
			"Once":      ginlock.Once(locks, httplock.Keys(httplock.ByHeader("Idempotency-Key"), httplock.Constant(name)), httplock.WithReplay()),
		} {
			guard := ginlock.Idempotent(locks, inner, patiently()...)
			srv := serve(t, router(around, outer, guard, func(c *gin.Context) {
				c.Status(http.StatusAccepted)
				c.String(http.StatusCreated, "created")
				c.Status(http.StatusTeapot)
			}))
			key := kind + strings.ReplaceAll(name, " ", "-")
			first := order(t, srv, key)
			if first.wantRun(t, http.StatusCreated); first.body != "created" {
				t.Errorf("%s, %s: body %q", kind, name, first.body)
			}
			order(t, srv, key).wantReplay(t, http.StatusCreated, "created")
		}
	}
}

// TestOneRefusalBehindAnotherWriter: a refusal is written once, although the writer around the guard does not say that it
// was written.
func TestOneRefusalBehindAnotherWriter(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	for name, around := range foreign() {
		for kind, guard := range map[string]gin.HandlerFunc{
			"default": ginlock.Once(locks, httplock.ByHeader("X-Missing")),
			"own": ginlock.Once(locks, httplock.ByHeader("X-Missing"), ginlock.WithRefusalHandler(
				func(c *gin.Context, conflict *httplock.Conflict) { ginlock.Refuse(c, conflict) })),
		} {
			a := order(t, serve(t, router(around, guard, func(*gin.Context) { t.Error("the handler ran") })), "k")
			if p := a.problem(t); a.status != http.StatusBadRequest || p.Code != httplock.CodeKeyRequired {
				t.Errorf("%s, %s: status %d, %q", name, kind, a.status, a.body)
			}
		}
	}
}

// TestWrittenToABuffer: a chain that has answered is not answered for when its context ends, although the writer around the
// guard does not say so.
func TestWrittenToABuffer(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	ttl, short := core.WithTTL(5*time.Second), core.WithMaxHold(time.Second)
	for kind, guard := range map[string]gin.HandlerFunc{
		"Exclusive":  ginlock.Exclusive(locks.Mutex, httplock.Constant("buffer"), ttl, short, patient),
		"Idempotent": ginlock.Idempotent(locks, httplock.Constant("buffer"), patiently(ttl, short)...),
	} {
		a := order(t, serve(t, router(buffered, guard, func(c *gin.Context) {
			_, _ = c.Writer.WriteString("done")
			<-c.Request.Context().Done()
		})), "k")
		if a.want(t, http.StatusOK); a.body != "done" {
			t.Errorf("%s: body %q", kind, a.body)
		}
	}
}

// TestStreamBehindHTTPGuards: gin's Stream needs a method of the server's writer, which every guard around gin passes on.
func TestStreamBehindHTTPGuards(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	key := httplock.ByHeader("X-User")
	for name, guard := range map[string]func(http.Handler) http.Handler{
		"Exclusive":  httplock.Exclusive(locks.Mutex, key, patient),
		"Once":       httplock.Once(locks, httplock.Keys(key, httplock.Constant("stream")), httplock.WithReplay()),
		"Idempotent": httplock.Idempotent(locks, key),
	} {
		runs := 0
		e := gin.New()
		e.POST("/", func(c *gin.Context) {
			runs++
			n := 0
			c.Stream(func(w io.Writer) bool {
				n++
				_, _ = fmt.Fprint(w, n)
				return n < 3
			})
		})
		srv := serve(t, guard(e))
		for range 2 {
			a := order(t, srv, "k")
			if a.want(t, http.StatusOK); a.body != "123" {
				t.Errorf("%s: body %q, error %v", name, a.body, a.err)
			}
		}
		if want := map[bool]int{true: 2, false: 1}[name == "Exclusive"]; runs != want {
			t.Errorf("%s: %d runs, want %d", name, runs, want)
		}
	}
}
