package nethttp_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

// hijackOnly is a writer with a choice of methods that net/http's writers do not have.
type hijackOnly struct {
	http.ResponseWriter
	http.Hijacker
}

// methods tells which optional methods a writer has.
func methods(w http.ResponseWriter) string {
	_, flusher := w.(http.Flusher)
	_, hijacker := w.(http.Hijacker)
	_, notifier := w.(interface{ CloseNotify() <-chan bool })
	return fmt.Sprint(flusher, hijacker, notifier)
}

// TestExclusiveKeepsMethodsOfTheWriter: a handler finds what it has without the guard, and nothing else.
func TestExclusiveKeepsMethodsOfTheWriter(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	guard := httplock.Exclusive(locks.Mutex, httplock.Constant("c"), patient)
	for name, wrap := range map[string]func(http.ResponseWriter) http.ResponseWriter{
		"net/http": func(w http.ResponseWriter) http.ResponseWriter { return w },
		"none":     func(w http.ResponseWriter) http.ResponseWriter { return struct{ http.ResponseWriter }{w} },
		"flush": func(w http.ResponseWriter) http.ResponseWriter {
			return struct {
				http.ResponseWriter
				http.Flusher
			}{w, w.(http.Flusher)}
		},
		"hijack": func(w http.ResponseWriter) http.ResponseWriter { return hijackOnly{w, w.(http.Hijacker)} },
	} {
		for _, http2 := range []bool{false, true} {
			if http2 && name == "hijack" {
				continue
			}
			var with, without string
			guarded := guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { with = methods(w) }))
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w = wrap(w)
				without = methods(w)
				guarded.ServeHTTP(w, r)
			})
			order(t, httpkit.Serve(t, h, func(s *httptest.Server) { s.EnableHTTP2 = http2 }), "k").Want(t, http.StatusOK)
			if with != without {
				t.Errorf("%s, HTTP/2 %v: flusher, hijacker, notifier %s, want %s", name, http2, with, without)
			}
		}
	}
}

// TestExclusiveLeavesAnswersAlone that were begun before the context of the run ended, in whichever way.
func TestExclusiveLeavesAnswersAlone(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	guard := httplock.Exclusive(locks.Mutex, httplock.Constant("c"), shortHold, patient)
	for name, write := range map[string]func(w http.ResponseWriter){
		"status": func(w http.ResponseWriter) { w.WriteHeader(http.StatusOK) },
		"bytes":  func(w http.ResponseWriter) { _, _ = w.Write([]byte("x")) },
		"string": func(w http.ResponseWriter) { _, _ = io.WriteString(w, "x") },
		"file":   func(w http.ResponseWriter) { _, _ = io.Copy(w, struct{ io.Reader }{strings.NewReader("x")}) },
		"flush":  func(w http.ResponseWriter) { w.(http.Flusher).Flush() },
		"control": func(w http.ResponseWriter) {
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
		},
		"hijack": func(w http.ResponseWriter) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nx")
			_ = conn.Close()
		},
	} {
		a := order(t, httpkit.Serve(t, guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			write(w)
			<-r.Context().Done()
		}))), "k")
		a.Want(t, http.StatusOK)
		if len(a.Body) > 1 {
			t.Errorf("%s: body %q", name, a.Body)
		}
	}
}
