package ginlock_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/core"
	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

// sized has no negative size.
type sized struct{ gin.ResponseWriter }

func (w sized) Size() int { return max(0, w.ResponseWriter.Size()) }

var errTaken = errors.New("the connection is not given away")

// noting is a writer with all optional methods, which notes their calls.
type noting struct {
	*httptest.ResponseRecorder
	calls []string
}

func (n *noting) note(call string) error {
	n.calls = append(n.calls, call)
	return nil
}

func (n *noting) Flush() { _ = n.FlushError() }

func (n *noting) FlushError() error { return n.note("flush") }

func (n *noting) CloseNotify() <-chan bool { _ = n.note("close notify"); return nil }

func (n *noting) Push(target string, _ *http.PushOptions) error { return n.note("push " + target) }

func (n *noting) SetReadDeadline(time.Time) error { return n.note("read deadline") }

func (n *noting) SetWriteDeadline(time.Time) error { return n.note("write deadline") }

func (n *noting) EnableFullDuplex() error { return n.note("full duplex") }

func (n *noting) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	_ = n.note("hijack")
	return nil, nil, errTaken
}

func (n *noting) ReadFrom(src io.Reader) (int64, error) { return io.Copy(n.ResponseRecorder, src) }

// use does with w what it offers, and returns what it was. gin's own writer panics if the server's lacks a method.
func use(w gin.ResponseWriter) (did []string) {
	try := func(name string, call func() any) {
		defer func() {
			if recover() != nil {
				did = append(did, name+" panics")
			}
		}()
		did = append(did, fmt.Sprint(name, " ", call()))
	}
	has := func(name string, found bool) { did = append(did, fmt.Sprint(name, " ", found)) }
	p, found := w.(http.Pusher)
	has("pusher", found)
	if found {
		try("push", func() any { return p.Push("/a.css", nil) })
	}
	controller := http.NewResponseController(w)
	try("pusher of gin", func() any {
		if p := w.Pusher(); p != nil {
			return p.Push("/b.css", nil)
		}
		return "none"
	})
	try("close notify", func() any { return w.CloseNotify() })
	try("read deadline", func() any { return controller.SetReadDeadline(time.Time{}) })
	try("write deadline", func() any { return controller.SetWriteDeadline(time.Time{}) })
	try("full duplex", func() any { return controller.EnableFullDuplex() })
	try("hijack", func() any { _, _, err := w.Hijack(); return err })
	try("controlled hijack", func() any { _, _, err := controller.Hijack(); return err })
	try("flush", func() any { w.Flush(); return nil })
	try("controlled flush", func() any { return controller.Flush() })
	_, _ = io.Copy(w, strings.NewReader("done"))
	return append(did, fmt.Sprint(w.Status(), w.Size(), w.Written()))
}

// reading and pushing are writers around the guard with an optional method of their own.
type (
	reading struct {
		gin.ResponseWriter
		io.ReaderFrom
	}
	server  interface{ http.Pusher }
	pushing struct {
		gin.ResponseWriter
		server
	}
	both struct {
		gin.ResponseWriter
		server
		io.ReaderFrom
	}
)

// TestEveryChoiceOfMethods: whatever the writer around the guard can do, itself or by unwrapping, the chain's writer can
// behind every guard, and no more.
func TestEveryChoiceOfMethods(t *testing.T) {
	t.Parallel()
	locks, err := core.New(testkit.Start(t).Client(), core.WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	user := httplock.ByHeader("X-User")
	guards := map[string]gin.HandlerFunc{
		"Once":       ginlock.Once(locks, httplock.Keys(user, httplock.ByHeader("Idempotency-Key")), httplock.WithReplay()),
		"Idempotent": ginlock.Idempotent(locks, user),
		"Exclusive":  ginlock.Exclusive(locks.Mutex, user, core.WithWait(time.Minute)),
		"a refusal":  nil,
	}
	for kind, guard := range guards {
		for around, wrap := range map[string]func(w gin.ResponseWriter, n *noting) gin.ResponseWriter{
			"gin's own": func(w gin.ResponseWriter, _ *noting) gin.ResponseWriter { return w },
			"opaque":    func(w gin.ResponseWriter, _ *noting) gin.ResponseWriter { return sized{w} },
			"reading":   func(w gin.ResponseWriter, n *noting) gin.ResponseWriter { return reading{w, n} },
			"pushing":   func(w gin.ResponseWriter, n *noting) gin.ResponseWriter { return pushing{w, n} },
			"both":      func(w gin.ResponseWriter, n *noting) gin.ResponseWriter { return both{w, n, n} },
		} {
			for has := httpkit.Methods(0); has <= httpkit.Every; has++ {
				if around != "gin's own" && has != 0 && has != httpkit.Every {
					continue
				}
				run := func(guard gin.HandlerFunc) (did, calls []string, body string) {
					n := &noting{ResponseRecorder: httptest.NewRecorder()}
					w := httpkit.WriterWith(has, n, httpkit.WriterWith(httpkit.Every, n, nil))
					handler := func(c *gin.Context) { did = use(c.Writer) }
					if kind == "a refusal" && guard == nil {
						guard = ginlock.Once(locks, httplock.ByHeader("X-Missing"), ginlock.WithRefusalHandler(
							func(c *gin.Context, _ *httplock.Conflict) { handler(c) }))
					}
					r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
					r.Header.Set("X-User", fmt.Sprint(kind, around, has))
					r.Header.Set("Idempotency-Key", "k")
					engine := gin.New()
					engine.POST("/", func(c *gin.Context) { c.Writer = wrap(c.Writer, n) }, guard, handler)
					engine.ServeHTTP(w, r)
					return did, n.calls, n.Body.String()
				}
				wantDid, wantCalls, wantBody := run(func(c *gin.Context) { c.Next() })
				did, calls, body := run(guard)
				if !slices.Equal(did, wantDid) || !slices.Equal(calls, wantCalls) || body != wantBody {
					t.Fatalf("%s, %s, methods %06b:\n%q, calls %q, body %q; without guard\n%q, calls %q, body %q",
						kind, around, has, did, calls, body, wantDid, wantCalls, wantBody)
				}
			}
		}
	}
}
