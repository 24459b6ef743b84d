package gin_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/core"
	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

// zip compresses as such middlewares do: they change the header in the first write.
func zip(c *gin.Context) {
	w := &zipWriter{ResponseWriter: c.Writer}
	c.Writer = w
	defer func() { c.Writer = w.ResponseWriter }()
	c.Next()
	if w.to != nil {
		_ = w.to.Close()
	}
}

type zipWriter struct {
	gin.ResponseWriter
	to *gzip.Writer
}

func (w *zipWriter) Write(p []byte) (int, error) {
	if w.to == nil {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Del("Content-Length")
		w.to = gzip.NewWriter(w.ResponseWriter)
	}
	return w.to.Write(p)
}

func (w *zipWriter) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

func unzip(t testing.TB, a answer) string {
	t.Helper()
	r, err := gzip.NewReader(strings.NewReader(a.body))
	if err != nil {
		t.Fatalf("%v: status %d, %v, %q", err, a.status, a.header, a.body)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Compression around the guard compresses the answer and the replay, each as its client can read it.
func TestCompressionAround(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	much := strings.Repeat("pen ", heldBack)
	for name, test := range map[string]struct {
		handler gin.HandlerFunc
		body    string
		omitted bool
	}{
		"JSON":          {func(c *gin.Context) { c.JSON(http.StatusCreated, gin.H{"id": 7}) }, `{"id":7}`, false},
		"with a length": {func(c *gin.Context) { c.File("testdata/pens.txt") }, "seven pens\n", false},
		"too much":      {func(c *gin.Context) { c.String(http.StatusOK, much) }, much, true},
	} {
		for kind, guard := range recording(locks, core.WithMaxValue(heldBack)) {
			t.Run(kind+", "+name, func(t *testing.T) {
				t.Parallel()
				srv := serve(t, router(zip, guard, test.handler))
				accept := func(r *http.Request) { r.Header.Set("Accept-Encoding", "gzip") } // and not the transport
				first := order(t, srv, "k", accept)
				if got := unzip(t, first); got != test.body {
					t.Errorf("first answer %.60q, want %.60q", got, test.body)
				}
				again := order(t, srv, "k", accept)
				if test.omitted {
					again.want(t, http.StatusConflict)
					return
				}
				again.wantReplay(t, first.status, again.body)
				if got := unzip(t, again); got != test.body {
					t.Errorf("replay %.60q, want %.60q", got, test.body)
				}
			})
		}
	}
}

// What a middleware around the guard has begun is not the handler's answer.
func TestAnswerBegunAround(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	for name, begin := range map[string]func(c *gin.Context){
		"status": func(c *gin.Context) { c.Status(http.StatusAccepted) },
		"header": func(c *gin.Context) {
			c.Status(http.StatusAccepted)
			c.Writer.WriteHeaderNow()
		},
		"body": func(c *gin.Context) { c.String(http.StatusAccepted, "begun, ") },
	} {
		for kind, guard := range recording(locks) {
			t.Run(kind+", "+name, func(t *testing.T) {
				t.Parallel()
				inner, inside := look()
				handler := func(c *gin.Context) { _, _ = c.Writer.WriteString("ended") }
				want := order(t, serve(t, router(begin, inner, handler)), "k")
				plain := receive(t, inside, "the look inside")
				srv := serve(t, router(begin, guard, inner, handler))
				sameAnswer(t, order(t, srv, "k"), want)
				if got := receive(t, inside, "the look inside"); got != plain {
					t.Errorf("%+v, without guard %+v", got, plain)
				}
				if a := order(t, srv, "k"); a.status != want.status || a.body != want.body {
					t.Errorf("replay %d, %q, want %d, %q", a.status, a.body, want.status, want.body)
				}
			})
		}
	}
}

// An answer without body is not begun, so that a middleware around the guard may give it one, as without guard.
func TestAnswerEndedAround(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	page := func(c *gin.Context) {
		c.Next()
		if c.Writer.Status() == http.StatusNotFound && !c.Writer.Written() {
			c.String(-1, "no such pen")
		}
	}
	for kind, guard := range recording(locks) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			a := order(t, serve(t, router(page, guard, func(c *gin.Context) { c.Status(http.StatusNotFound) })), "k")
			a.want(t, http.StatusNotFound)
			if a.body != "no such pen" {
				t.Errorf("body %q", a.body)
			}
		})
	}
}

// HandleContext answers with gin's own writer, which the guard sees too: the answer is recorded.
func TestHandleContextBehindRecords(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	for kind, guard := range recording(locks) {
		for name, again := range map[string]gin.HandlerFunc{"guarded twice": guard, "guarded once": nextOnly} {
			t.Run(kind+", "+name, func(t *testing.T) {
				t.Parallel()
				runs := 0
				engine := gin.New()
				engine.POST("/", guard, func(c *gin.Context) {
					c.Request.URL.Path = "/v2"
					engine.HandleContext(c)
				})
				engine.POST("/v2", again, func(c *gin.Context) {
					runs++
					if n := httpkit.Attempt(c.Request.Context()); n != 1 {
						t.Errorf("attempt %d", n)
					}
					c.Header("Location", "/orders/7")
					c.String(http.StatusCreated, "created")
				})
				srv := serve(t, engine)
				first := order(t, srv, "k")
				first.wantRun(t, http.StatusCreated)
				if first.body != "created" {
					t.Errorf("body %q", first.body)
				}
				a := order(t, srv, "k")
				a.wantReplay(t, http.StatusCreated, "created")
				if a.header.Get("Location") != "/orders/7" || runs != 1 {
					t.Errorf("header %v, %d runs", a.header, runs)
				}
			})
		}
	}
}

// A logger around the guard logs what the client got, whatever that was.
func TestStatusForLogs(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	var log bytes.Buffer
	logger := gin.LoggerWithConfig(gin.LoggerConfig{Output: &log, Formatter: func(p gin.LogFormatterParams) string {
		return http.StatusText(p.StatusCode) + "\n"
	}})
	guard := ginlock.Idempotent(locks, httplock.ByHeader("X-User"), patiently()...)
	srv := serve(t, router(logger, guard, func(c *gin.Context) { c.JSON(http.StatusCreated, gin.H{}) }))
	order(t, srv, "k").wantRun(t, http.StatusCreated)
	order(t, srv, "k").wantReplay(t, http.StatusCreated, "{}")
	other := func(r *http.Request) { r.URL.RawQuery = "other" }
	order(t, srv, "k", other).wantRefusal(t, http.StatusUnprocessableEntity, httplock.CodeKeyReused)
	order(t, srv, `""`).wantRefusal(t, http.StatusBadRequest, httplock.CodeKeyInvalid)
	srv.Close() // and with it the last use of the log
	if want := "Created\nCreated\nUnprocessable Entity\nBad Request\n"; log.String() != want {
		t.Errorf("logged %q, want %q", log.String(), want)
	}
}
