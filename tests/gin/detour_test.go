package gin_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/core"
	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// tee is a writer that passes everything on.
type tee struct{ gin.ResponseWriter }

// TestHandleContextInTheMiddle: an answer of which HandleContext writes a part around the guard has the order, the status
// and the header that it has without the guard, and a retry never gets the part that the guard has seen for the whole.
func TestHandleContextInTheMiddle(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	write := func(status int, text string) gin.HandlerFunc {
		return func(c *gin.Context) { c.String(status, text) }
	}
	bare := func(status int, text string) gin.HandlerFunc { // without any look at the header
		return func(c *gin.Context) {
			c.Status(status)
			_, _ = c.Writer.WriteString(text)
		}
	}
	nothing := func(*gin.Context) {}
	for name, test := range map[string]struct{ before, within, after gin.HandlerFunc }{
		"A B C":           {write(201, "A"), write(202, "B"), write(203, "C")},
		"bare":            {bare(201, "A"), bare(202, "B"), bare(203, "C")},
		"A B":             {write(201, "A"), write(202, "B"), nothing},
		"B C":             {nothing, write(202, "B"), write(203, "C")},
		"B":               {nothing, write(202, "B"), nothing},
		"bare B":          {nothing, bare(202, "B"), nothing},
		"A C":             {write(201, "A"), nothing, write(203, "C")},
		"A":               {write(201, "A"), nothing, nothing},
		"status, bare":    {func(c *gin.Context) { c.Status(201) }, func(c *gin.Context) { _, _ = c.Writer.WriteString("B") }, nothing},
		"status B":        {func(c *gin.Context) { c.Status(201) }, write(202, "B"), nothing},
		"header now, B":   {func(c *gin.Context) { c.Status(201); c.Writer.WriteHeaderNow() }, write(202, "B"), nothing},
		"header now bare": {func(c *gin.Context) { c.Status(201); c.Writer.WriteHeaderNow() }, bare(202, "B"), nothing},
		"flushed":         {func(c *gin.Context) { c.String(201, "A"); c.Writer.Flush() }, write(202, "B"), write(203, "C")},
		"flush within":    {write(201, "A"), func(c *gin.Context) { c.Writer.Flush(); c.String(202, "B") }, write(203, "C")},
		"status within":   {write(201, "A"), func(c *gin.Context) { c.Status(202) }, nothing},
		"JSON":            {func(c *gin.Context) { c.JSON(201, 1) }, func(c *gin.Context) { c.JSON(202, 2) }, nothing},
		"large":           {write(201, strings.Repeat("A", 2*heldBack)), write(202, "B"), write(203, "C")},
		"copy": {write(201, "A"), func(c *gin.Context) {
			c.Status(202)
			_, _ = io.Copy(c.Writer, strings.NewReader("B"))
		}, nothing},
	} {
		mount := func(guards ...gin.HandlerFunc) (engine *gin.Engine, outside <-chan seen) {
			outer, outside := look()
			engine = gin.New()
			engine.POST("/", append(append(gin.HandlersChain{outer}, guards...), func(c *gin.Context) {
				c.Header("X-Before", "1")
				test.before(c)
				c.Request.URL.Path = "/within"
				engine.HandleContext(c)
				test.after(c)
			})...)
			engine.POST("/within", func(c *gin.Context) {
				c.Header("X-Within", "1")
				test.within(c)
			})
			return engine, outside
		}
		plain, wantOutside := mount()
		want := order(t, serve(t, plain), "k")
		wantSeen := receive(t, wantOutside, "the look without guard")
		guards := map[string]gin.HandlersChain{}
		for kind, guard := range recording(locks, core.WithMaxValue(heldBack)) {
			guards[kind] = gin.HandlersChain{guard}
			guards[kind+", nested"] = gin.HandlersChain{
				guard, ginlock.Once(locks, httplock.Keys(httplock.ByHeader("X-User"), httplock.Constant("inner"))),
			}
		}
		guards["Exclusive"] = gin.HandlersChain{ginlock.Exclusive(locks.Mutex, httplock.ByHeader("X-User"), patient)}
		for kind, chain := range guards {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				engine, outside := mount(chain...)
				srv := serve(t, engine)
				sameAnswer(t, order(t, srv, "k"), want)
				got := receive(t, outside, "the look")
				if strings.Contains(name, "bare") {
					got.status = wantSeen.status // gin's own writer has the last one, as nothing asked before for the header
				}
				if got != wantSeen {
					t.Errorf("seen outside %+v, without guard %+v", got, wantSeen)
				}
				if kind == "Exclusive" {
					return
				}
				again := order(t, srv, "k")
				whole := again.replayed() && again.status == want.status && again.body == want.body
				if !whole && (again.status != http.StatusConflict || again.problem(t).Code != httplock.CodeAlreadyCompleted) {
					t.Errorf("retry %d %q, want all of %d %q, or 409 already-completed", again.status, again.body, want.status, want.body)
				}
			})
		}
	}
}

// TestHandleContextBehindAWriter: the same, as far as it goes with a writer around the guard that hides gin's own.
func TestHandleContextBehindAWriter(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	around := wrapped(func(w gin.ResponseWriter) gin.ResponseWriter { return tee{w} })
	for kind, guard := range recording(locks) {
		for name, flush := range map[string]bool{"held back": false, "passed through": true} {
			engine := gin.New()
			engine.POST("/", around, guard, func(c *gin.Context) {
				c.String(http.StatusCreated, "A")
				if flush {
					c.Writer.Flush()
				}
				c.Request.URL.Path = "/within"
				engine.HandleContext(c)
			})
			engine.POST("/within", func(c *gin.Context) { c.String(http.StatusAccepted, "B") })
			srv := serve(t, engine)
			key := kind + name[:4]
			if a := order(t, srv, key); !strings.Contains(a.body, "A") || !strings.Contains(a.body, "B") {
				t.Errorf("%s, %s: body %q", kind, name, a.body)
			}
			order(t, srv, key).wantRefusal(t, http.StatusConflict, httplock.CodeAlreadyCompleted)
		}
	}
}

// TestPanicLeavesTheStatus: gin's own writer has the status from before the guard when the chain has panicked, although it
// gets the chain's status early, for HandleContext.
func TestPanicLeavesTheStatus(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	for kind, guard := range recording(locks) {
		render := func(c *gin.Context) {
			defer func() {
				if recover() != nil {
					c.String(-1, "recovered %d", c.Writer.Status())
				}
			}()
			c.Next()
		}
		a := order(t, serve(t, router(render, guard, func(c *gin.Context) {
			c.String(http.StatusCreated, "A")
			panic("handler")
		})), "k")
		if a.want(t, http.StatusOK); a.body != "recovered 200" {
			t.Errorf("%s: body %q", kind, a.body)
		}
	}
}

// TestTextsOfTheRouter: what gin answers for a path without a route, and for a method that it does not have, is the same
// behind a guard, each time.
func TestTextsOfTheRouter(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	for name, custom := range map[string]gin.HandlerFunc{
		"default": nil, "status": func(c *gin.Context) { c.Status(http.StatusNotFound) },
		"text": func(c *gin.Context) { c.String(http.StatusNotFound, "no such page") },
	} {
		for _, policy := range []core.FailurePolicy{core.RetryFailures, core.HoldFailures} {
			for kind, guard := range recording(locks, core.WithFailurePolicy(policy)) {
				mount := func(guards ...gin.HandlerFunc) *gin.Engine {
					engine := gin.New()
					engine.HandleMethodNotAllowed = true
					engine.Use(guards...)
					engine.GET("/", nextOnly)
					if custom != nil {
						engine.NoRoute(custom)
					}
					return engine
				}
				plain, srv := serve(t, mount()), serve(t, mount(guard))
				for _, path := range []string{"/", "/missing"} {
					at := func(r *http.Request) { r.URL.Path = path }
					want := order(t, plain, "k", at)
					for i := range 3 {
						a := order(t, srv, fmt.Sprintf("%s-%d-%s-%d-%d", kind, len(path), name, policy, i/2), at)
						if a.status != want.status || a.body != want.body || a.header.Get("Allow") != want.header.Get("Allow") {
							t.Errorf("%s, %s, %s, request %d: %d %q, without guard %d %q",
								name, kind, path, i, a.status, a.body, want.status, want.body)
						}
					}
				}
			}
		}
	}
}

// TestBodyAddedAround: a status for which a middleware around the guard writes the text gets that text in a replay too.
func TestBodyAddedAround(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	page := func(c *gin.Context) {
		if c.Next(); c.Writer.Status() == http.StatusNotFound && !c.Writer.Written() {
			c.String(-1, "no such pen")
		}
	}
	guard := ginlock.Idempotent(locks, httplock.ByHeader("X-User"), patiently()...)
	srv := serve(t, router(page, guard, func(c *gin.Context) { c.Status(http.StatusNotFound) }))
	order(t, srv, "k").wantRun(t, http.StatusNotFound)
	order(t, srv, "k").wantReplay(t, http.StatusNotFound, "no such pen")
	srv = serve(t, router(page, guard, func(c *gin.Context) { c.AbortWithStatus(http.StatusNotFound) }))
	order(t, srv, "l").wantRun(t, http.StatusNotFound)
	order(t, srv, "l").wantReplay(t, http.StatusNotFound, "")
}

// limited is a body that answers the request when too much of it is read, as the body of gin-contrib/size does.
type limited struct {
	io.ReadCloser
	c *gin.Context
}

func (l limited) Read([]byte) (int, error) {
	err := errors.New("HTTP request too large")
	_ = l.c.Error(err)
	l.c.String(http.StatusRequestEntityTooLarge, "request too large")
	l.c.AbortWithStatus(http.StatusRequestEntityTooLarge)
	return 0, err
}

// TestBodyThatAnswers: what limits the body may answer while a guard reads it. Then the guard adds nothing.
func TestBodyThatAnswers(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	guards := recording(locks)
	guards["Exclusive"] = ginlock.Exclusive(locks.Mutex, httplock.ByHeader("X-User"), patient)
	guards["by the key"] = ginlock.Exclusive(locks.Mutex, httplock.ByJSON("/item"), patient)
	for kind, guard := range guards {
		for name, around := range map[string]gin.HandlerFunc{"gin's own": nextOnly, "blank": blank} {
			limit := func(c *gin.Context) { c.Request.Body = limited{c.Request.Body, c} }
			a := order(t, serve(t, router(around, limit, guard, func(*gin.Context) { t.Error("the handler ran") })), "k", func(r *http.Request) {
				r.Header.Set("Content-Type", "application/json")
			})
			if a.want(t, http.StatusRequestEntityTooLarge); a.body != "request too large" {
				t.Errorf("%s, %s: body %q", kind, name, a.body)
			}
		}
	}
}
