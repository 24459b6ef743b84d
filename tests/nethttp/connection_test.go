package nethttp_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

// dial opens a bare connection, for clients that do not behave.
func dial(t *testing.T, srv *httptest.Server) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(httpkit.Patience)); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

func write(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
}

func readStatus(t *testing.T, conn net.Conn) int {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

func TestClientThatLeavesIsNeverRun(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*httptest.Server){"HTTP/1": func(*httptest.Server) {}, "HTTP/2": httpkit.HTTP2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stage, watch := httpkit.NewStage(t), newWatch()
			locks := newLocks(t, testkit.Start(t).Client(), watch.hooks())
			guard := httplock.Exclusive(locks.Mutex, cart(), core.WithWait(httpkit.Patience))
			srv := httpkit.Serve(t, guard(stage), edit)
			first := httpkit.PostAside(t.Context(), srv, "ada", "7")
			httpkit.Receive(t, stage.Entered, "the first run")
			ctx, leave := context.WithCancel(t.Context())
			second := httpkit.PostAside(ctx, srv, "ada", "7")
			awaitWaiter(t, locks, httpkit.Receive(t, watch.acquired, "the hook"))
			leave()
			httpkit.Receive(t, second, "the client's error")
			conflict := httpkit.Receive(t, watch.refused, "the server to notice")
			if conflict.Code != httplock.CodeClientGone || conflict.Status != httplock.StatusClientGone {
				t.Errorf("code %q, status %d, want client-gone", conflict.Code, conflict.Status)
			}
			close(stage.Leave)
			httpkit.Receive(t, first, "the first answer").Want(t, http.StatusOK)
			httpkit.Post(t.Context(), srv, "ada", "7").Want(t, http.StatusOK)
			if runs := 1 + len(stage.Entered); runs != 2 {
				t.Errorf("%d runs, want 2: the first and the last request", runs)
			}
		})
	}
}

// A client may close its sending side and continue reading. It must not take silence for success.
func TestHalfClosedClientGetsNoSuccess(t *testing.T) {
	t.Parallel()
	stage, watch := httpkit.NewStage(t), newWatch()
	locks := newLocks(t, testkit.Start(t).Client(), watch.hooks())
	guard := httplock.Exclusive(locks.Mutex, cart(), core.WithWait(httpkit.Patience))
	srv := httpkit.Serve(t, guard(stage))
	first := httpkit.PostAside(t.Context(), srv, "ada", "7")
	httpkit.Receive(t, stage.Entered, "the first run")
	conn := dial(t, srv)
	write(t, conn, "POST /?cart=7 HTTP/1.1\r\nHost: x\r\nX-User: ada\r\nContent-Length: 3\r\n\r\npay")
	awaitWaiter(t, locks, httpkit.Receive(t, watch.acquired, "the hook"))
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if status := readStatus(t, conn); status != httplock.StatusClientGone {
		t.Errorf("status %d, want %d", status, httplock.StatusClientGone)
	}
	close(stage.Leave)
	httpkit.Receive(t, first, "the first answer").Want(t, http.StatusOK)
}

// TestHalfClosedBeforeTheGuard: net/http does not tell a client that has closed its sending side from one that has left, so
// its request does not run.
func TestHalfClosedBeforeTheGuard(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	for name, guard := range map[string]func(http.Handler) http.Handler{
		"Exclusive": httplock.Exclusive(locks.Mutex, cart(), patient),
		"Once":      httplock.Once(locks, cart(), unhurried),
	} {
		inner := guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Errorf("%s: the handler ran", name) }))
		srv := httpkit.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			httpkit.Receive(t, r.Context().Done(), "the end of the context")
			inner.ServeHTTP(w, r)
		}))
		conn := dial(t, srv)
		write(t, conn, "POST /?cart=7 HTTP/1.1\r\nHost: x\r\nX-User: ada\r\nContent-Length: 3\r\n\r\npay")
		if err := conn.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if status := readStatus(t, conn); status != httplock.StatusClientGone {
			t.Errorf("%s: status %d, want %d", name, status, httplock.StatusClientGone)
		}
	}
}

// TestPanicIsSentAgain: net/http closes the connection of a handler that panics. Go's http.Transport then sends a request with an
// Idempotency-Key again by itself, if the connection was used before. By default the second one runs.
func TestPanicIsSentAgain(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	plain := httplock.Idempotent(locks, httplock.Unscoped(), unhurried)
	for name, test := range map[string]struct {
		guard func(http.Handler) http.Handler
		runs  int32
	}{
		"Default": {plain, 2},
		"Recovered": {func(next http.Handler) http.Handler {
			guarded := plain(next)
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer func() {
					if recover() != nil {
						w.WriteHeader(http.StatusInternalServerError)
					}
				}()
				guarded.ServeHTTP(w, r)
			})
		}, 1},
		"Held": {httplock.Idempotent(locks, httplock.Unscoped(), unhurried, core.WithFailurePolicy(core.HoldFailures)), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var runs atomic.Int32
			srv := httpkit.Serve(t, test.guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/panic" {
					runs.Add(1)
					panic("application")
				}
				w.WriteHeader(http.StatusCreated)
			})))
			post := func(path string) httpkit.Answer {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+path, http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Idempotency-Key", `"`+name+path+`"`)
				return httpkit.Send(srv, req)
			}
			post("/connects").Want(t, http.StatusCreated)
			post("/panic")
			if got := runs.Load(); got != test.runs {
				t.Errorf("ran %d times in one call of the client, want %d", got, test.runs)
			}
		})
	}
}

func TestLockIsKeptUntilTheHandlerReturns(t *testing.T) {
	t.Parallel()
	stage, watch := httpkit.NewStage(t), newWatch()
	locks := newLocks(t, testkit.Start(t).Client(), watch.hooks())
	srv := httpkit.Serve(t, httplock.Exclusive(locks.Mutex, cart(), core.WithWait(0), unhurried)(stage))
	ctx, leave := context.WithCancel(t.Context())
	first := httpkit.PostAside(ctx, srv, "ada", "7")
	running := httpkit.Receive(t, stage.Entered, "the run")
	leave()
	httpkit.Receive(t, first, "the client's error")
	httpkit.Receive(t, running.Context().Done(), "the handler's context to end")
	httpkit.Post(t.Context(), srv, "ada", "7").Want(t, http.StatusConflict)
	close(stage.Leave)
	awaitFree(t, locks, httpkit.Receive(t, watch.acquired, "the hook"))
}

func TestSlowBodyHoldsNoLock(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	begun := make(chan struct{}, 2)
	key := func(r *http.Request) (httplock.Key, error) {
		begun <- struct{}{}
		return cart()(r)
	}
	guard := httplock.Exclusive(locks.Mutex, key, core.WithWait(0), unhurried)
	srv := httpkit.Serve(t, guard(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	})))
	slow := dial(t, srv)
	write(t, slow, "POST /?cart=7 HTTP/1.1\r\nHost: x\r\nX-User: ada\r\nContent-Length: 3\r\n\r\npa")
	httpkit.Receive(t, begun, "the slow request")
	httpkit.Post(t.Context(), srv, "ada", "7").Want(t, http.StatusOK)
	write(t, slow, "y")
	if status := readStatus(t, slow); status != http.StatusOK {
		t.Errorf("the slow request got %d", status)
	}
}

func TestBodyCutShortIsNotRun(t *testing.T) {
	t.Parallel()
	watch := newWatch()
	locks := newLocks(t, testkit.Start(t).Client(), watch.hooks())
	srv := httpkit.Serve(t, httplock.Exclusive(locks.Mutex, cart(), patient)(http.HandlerFunc(
		func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") })))
	conn := dial(t, srv)
	write(t, conn, "POST /?cart=7 HTTP/1.1\r\nHost: x\r\nX-User: ada\r\nContent-Length: 3\r\n\r\npa")
	_ = conn.Close()
	if c := httpkit.Receive(t, watch.refused, "the refusal"); c.Code != httplock.CodeBodyUnreadable {
		t.Errorf("code %q, want body-unreadable", c.Code)
	}
}

func TestHandlerGetsTheWholeBody(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	const limit = 1000
	srv := httpkit.Serve(t, httplock.Exclusive(locks.Mutex, cart(), patient, httplock.WithBodyLimit(limit))(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			_, _ = w.Write(body)
		})))
	for _, size := range []int{0, 1, limit - 1, limit, limit + 1, 10 * limit} {
		for _, known := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d bytes, length known %v", size, known), func(t *testing.T) {
				t.Parallel()
				sent := bytes.Repeat([]byte("b"), size)
				body := io.Reader(bytes.NewReader(sent))
				if !known {
					body = iotest.OneByteReader(body) // net/http cannot see its length
				}
				target := fmt.Sprintf("%s/?cart=%d-%v", srv.URL, size, known)
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, target, body)
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("X-User", "ada")
				a := httpkit.Send(srv, req)
				a.Want(t, http.StatusOK)
				if a.Body != string(sent) {
					t.Errorf("%d bytes came back", len(a.Body))
				}
			})
		}
	}
}

// An error of the body is the handler's to answer, as it would be without the guard.
func TestHandlerGetsTheErrorOfTheBody(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	guarded := httplock.Exclusive(locks.Mutex, cart(), core.WithWait(httpkit.Patience))(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			if text, err := io.ReadAll(r.Body); err != nil {
				http.Error(w, string(text), http.StatusRequestEntityTooLarge)
			}
		}))
	srv := httpkit.Serve(t, http.MaxBytesHandler(guarded, 2))
	a := httpkit.Post(t.Context(), srv, "ada", "7")
	a.Want(t, http.StatusRequestEntityTooLarge)
	if strings.TrimSpace(a.Body) != "pa" {
		t.Errorf("the handler read %q before the error, want what was allowed", a.Body)
	}
}

// The server removes the files of a form, though it was parsed from the guard's copy of the request.
func TestFilesOfFormAreRemoved(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	srv := httpkit.Serve(t, httplock.Exclusive(locks.Mutex, httplock.Constant("all"), patient)(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			if err := r.ParseMultipartForm(1); err != nil {
				t.Error(err)
				return
			}
			file, err := r.MultipartForm.File["f"][0].Open()
			if err != nil {
				t.Error(err)
				return
			}
			defer file.Close()
			_, _ = io.WriteString(w, file.(*os.File).Name())
		})))
	var form bytes.Buffer
	parts := multipart.NewWriter(&form)
	part, _ := parts.CreateFormFile("f", "f")
	_, _ = part.Write(bytes.Repeat([]byte("f"), 1000))
	_ = parts.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, &form)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", parts.FormDataContentType())
	a := httpkit.Send(srv, req)
	a.Want(t, http.StatusOK)
	testkit.Eventually(t, httpkit.Patience, "the file to be removed", func() bool {
		_, err := os.Stat(a.Body)
		return errors.Is(err, os.ErrNotExist)
	})
}

// A guard that reads nothing ahead refuses a request before its client sends the body.
func TestRefusedBeforeContinue(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	stage := httpkit.NewStage(t)
	srv := httpkit.Serve(t, httplock.Exclusive(locks.Mutex, cart(), core.WithWait(0), httplock.WithBodyLimit(0), unhurried)(stage))
	first := httpkit.PostAside(t.Context(), srv, "ada", "7")
	httpkit.Receive(t, stage.Entered, "the first run")
	conn := dial(t, srv)
	write(t, conn, "POST /?cart=7 HTTP/1.1\r\nHost: x\r\nX-User: ada\r\nContent-Length: 1000000\r\n"+
		"Expect: 100-continue\r\n\r\n")
	if status := readStatus(t, conn); status != http.StatusConflict {
		t.Errorf("status %d, want 409 without 100 before it", status)
	}
	close(stage.Leave)
	httpkit.Receive(t, first, "the first answer").Want(t, http.StatusOK)
}

func TestAnswersBeforeTheServerStopsWriting(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	stage := httpkit.NewStage(t)
	guard := httplock.Exclusive(locks.Mutex, cart(), core.WithWait(time.Hour))
	holder := httpkit.Serve(t, guard(stage))
	unlimited := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // or a busy machine has its answer cut off
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
		guard(stage).ServeHTTP(w, r)
	})
	hurried := httpkit.Serve(t, unlimited, func(srv *httptest.Server) { srv.Config.WriteTimeout = 2 * time.Second })
	first := httpkit.PostAside(t.Context(), holder, "ada", "7")
	httpkit.Receive(t, stage.Entered, "the first run")
	a := httpkit.Post(t.Context(), hurried, "ada", "7")
	if p := a.Problem(t); p.Code != httplock.CodeLockConflict {
		t.Errorf("code %q, want lock-conflict", p.Code)
	}
	close(stage.Leave)
	httpkit.Receive(t, first, "the first answer").Want(t, http.StatusOK)
}

func TestWriterIsPassedThrough(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	guard := httplock.Exclusive(locks.Mutex, httplock.Constant("all"), core.WithWait(httpkit.Patience))
	var outer http.ResponseWriter
	inner := guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if wraps, ok := w.(interface{ Unwrap() http.ResponseWriter }); !ok || wraps.Unwrap() != outer {
			t.Errorf("the handler writes to a %T", w)
		}
		if err := http.NewResponseController(w).SetReadDeadline(time.Time{}); err != nil {
			t.Error(err)
		}
		if _, ok := w.(http.Flusher); !ok {
			t.Error("no Flusher")
		}
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
	}))
	srv := httpkit.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		outer = w
		inner.ServeHTTP(w, r)
	}))
	httpkit.Post(t.Context(), srv, "ada", "7").Want(t, http.StatusAccepted)
}

// noticed is a body that tells when it is read.
type noticed struct {
	io.ReadCloser
	read chan struct{}
}

func (b *noticed) Read(p []byte) (int, error) {
	select {
	case b.read <- struct{}{}:
	default:
	}
	return b.ReadCloser.Read(p)
}

// TestConnect: CONNECT is guarded as any method. A body that never comes holds no key, and a tunnel, which has none, begins at once.
func TestConnect(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	read := make(chan struct{}, 1)
	mux := http.NewServeMux()
	mux.Handle("/cart/{id}", httplock.Exclusive(locks.Mutex, httplock.ByPathValue("id"), unhurried)(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); err != nil || r.Method != http.MethodConnect {
				return
			}
			conn, both, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
			line, _ := both.ReadString('\n')
			_, _ = io.WriteString(conn, "echo "+line)
		})))
	srv := httpkit.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = &noticed{r.Body, read}
		mux.ServeHTTP(w, r)
	}), func(*httptest.Server) {})
	for i, fields := range []string{"Content-Length: 10", "Transfer-Encoding: chunked"} {
		write(t, dial(t, srv), fmt.Sprintf("CONNECT /cart/%d HTTP/1.1\r\nHost: test\r\n%s\r\n\r\n", i, fields))
		httpkit.Receive(t, read, "the server to ask for the body")
		other := dial(t, srv)
		write(t, other, fmt.Sprintf("POST /cart/%d HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n", i))
		if status := readStatus(t, other); status != http.StatusOK {
			t.Errorf("%s: another client gets %d", fields, status)
		}
		select { // the request of the other client
		case <-read:
		default:
		}
	}
	tunnel := dial(t, srv)
	write(t, tunnel, "CONNECT /cart/7 HTTP/1.1\r\nHost: test\r\n\r\n")
	answers := bufio.NewReader(tunnel)
	for _, want := range []string{"HTTP/1.1 200 OK\r\n", "\r\n"} {
		if line, err := answers.ReadString('\n'); line != want || err != nil {
			t.Fatalf("%q, error %v", line, err)
		}
	}
	write(t, tunnel, "hello\n")
	if line, err := answers.ReadString('\n'); line != "echo hello\n" || err != nil {
		t.Errorf("%q, error %v", line, err)
	}
}
