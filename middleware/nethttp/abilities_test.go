package httplock_test

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

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

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

func (n *noting) ReadFrom(src io.Reader) (size int64, err error) {
	return io.Copy(n.ResponseRecorder, src)
}

// use does with w what it offers, by assertions and by the controller, and returns what it was.
func use(w http.ResponseWriter) (did []string) {
	controller := http.NewResponseController(w)
	if n, ok := w.(interface{ CloseNotify() <-chan bool }); ok {
		did = append(did, "close notify")
		n.CloseNotify()
	}
	if p, ok := w.(http.Pusher); ok {
		did = append(did, fmt.Sprint("push ", p.Push("/a.css", nil)))
	}
	did = append(did, fmt.Sprint(
		"controlled ", controller.SetReadDeadline(time.Time{}), controller.SetWriteDeadline(time.Time{}),
		controller.EnableFullDuplex(),
	))
	if h, ok := w.(http.Hijacker); ok {
		_, _, err := h.Hijack()
		did = append(did, fmt.Sprint("hijack ", err))
	}
	_, _, err := controller.Hijack()
	did = append(did, fmt.Sprint("controlled hijack ", err))
	if f, ok := w.(http.Flusher); ok {
		did = append(did, "flush")
		f.Flush()
	}
	did = append(did, fmt.Sprint("controlled flush ", controller.Flush()))
	_, _ = io.Copy(w, strings.NewReader("done"))
	return did
}

// TestEveryChoiceOfMethods: whatever the server's writer can do, itself or by unwrapping, the handler's writer can
// behind every guard, and no more. That it reads from a source in any case does not matter to a program, which calls
// io.Copy. So can the writer of a handler of refusals.
func TestEveryChoiceOfMethods(t *testing.T) {
	t.Parallel()
	locks, err := core.New(testkit.Start(t).Client(), core.WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	key, patient := httplock.ByHeader("X-User"), httplock.WithAskTimeout(time.Minute) // a busy machine is no outage
	refusing := func(guard func(refuse httplock.Option) func(http.Handler) http.Handler) func(http.Handler) http.Handler {
		return func(h http.Handler) http.Handler {
			return guard(httplock.WithRefusalHandler(func(w http.ResponseWriter, r *http.Request, _ *httplock.Conflict) {
				h.ServeHTTP(w, r)
			}))(http.NotFoundHandler())
		}
	}
	for name, guard := range map[string]func(http.Handler) http.Handler{
		"Exclusive":  httplock.Exclusive(locks.Mutex, key, core.WithWait(time.Minute), patient),
		"Once":       httplock.Once(locks, httplock.Keys(key, httplock.ByHeader("Idempotency-Key")), patient),
		"Idempotent": httplock.Idempotent(locks, key, patient),
		"nested": func(h http.Handler) http.Handler {
			return httplock.Idempotent(locks, key, patient)(httplock.Exclusive(locks.Mutex, key, core.WithWait(time.Minute), patient)(
				httplock.Once(locks, httplock.Keys(key, httplock.ByHeader("Idempotency-Key")), patient)(h)))
		},
		"a refusal": refusing(func(refuse httplock.Option) func(http.Handler) http.Handler {
			return httplock.Once(locks, httplock.ByHeader("X-Missing"), refuse)
		}),
	} {
		for reached := httpkit.Methods(0); reached <= httpkit.Every; reached++ {
			for i, direct := range []httpkit.Methods{0, reached &^ (httpkit.Flush | httpkit.Push | httpkit.Control), reached} {
				run := func(guard func(http.Handler) http.Handler) (did, calls []string, body string) {
					outer := &noting{ResponseRecorder: httptest.NewRecorder()}
					w := httpkit.WriterWith(direct, outer, httpkit.WriterWith(reached, outer, nil))
					r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
					r.Header.Set("X-User", fmt.Sprint(name, i, reached))
					r.Header.Set("Idempotency-Key", "k")
					guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { did = use(w) })).ServeHTTP(w, r)
					return did, outer.calls, outer.Body.String()
				}
				wantDid, wantCalls, wantBody := run(func(h http.Handler) http.Handler { return h })
				did, calls, body := run(guard)
				if !slices.Equal(did, wantDid) || !slices.Equal(calls, wantCalls) || body != wantBody {
					t.Fatalf("%s, methods %06b, unwrapped %06b:\n%q, calls %q, body %q; without guard\n%q, calls %q, body %q",
						name, direct, reached, did, calls, body, wantDid, wantCalls, wantBody)
				}
			}
		}
	}
}
