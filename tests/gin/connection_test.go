package gin_test

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
	"testing"
	"testing/iotest"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/core"
	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// dial opens a bare connection, for clients that do not behave.
func dial(t *testing.T, srv *httptest.Server) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
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

func http2(srv *httptest.Server) { srv.EnableHTTP2 = true }

func TestClientThatLeavesIsNeverRun(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*httptest.Server){"HTTP/1": func(*httptest.Server) {}, "HTTP/2": http2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stage, watch := newStage(t), newWatch()
			locks := newLocks(t, testkit.Start(t).Client(), watch.hooks())
			guard := ginlock.Exclusive(locks.Mutex, cart(), core.WithWait(patience))
			srv := serve(t, router(guard, stage.handle), edit)
			first := postAside(t.Context(), srv, "ada", "7")
			receive(t, stage.entered, "the first run")
			ctx, leave := context.WithCancel(t.Context())
			second := postAside(ctx, srv, "ada", "7")
			awaitWaiter(t, locks, receive(t, watch.acquired, "the hook"))
			leave()
			receive(t, second, "the client's error")
			conflict := receive(t, watch.refused, "the server to notice")
			if conflict.Code != httplock.CodeClientGone || conflict.Status != httplock.StatusClientGone {
				t.Errorf("code %q, status %d, want client-gone", conflict.Code, conflict.Status)
			}
			close(stage.leave)
			receive(t, first, "the first answer").want(t, http.StatusOK)
			post(t.Context(), srv, "ada", "7").want(t, http.StatusOK)
			if runs := 1 + len(stage.entered); runs != 2 {
				t.Errorf("%d runs, want 2: the first and the last request", runs)
			}
		})
	}
}

// A client may close its sending side and continue reading. It must not take silence for success.
func TestHalfClosedClientGetsNoSuccess(t *testing.T) {
	t.Parallel()
	stage, watch := newStage(t), newWatch()
	locks := newLocks(t, testkit.Start(t).Client(), watch.hooks())
	guard := ginlock.Exclusive(locks.Mutex, cart(), core.WithWait(patience))
	srv := serve(t, router(guard, stage.handle))
	first := postAside(t.Context(), srv, "ada", "7")
	receive(t, stage.entered, "the first run")
	conn := dial(t, srv)
	write(t, conn, "POST /?cart=7 HTTP/1.1\r\nHost: x\r\nX-User: ada\r\nContent-Length: 3\r\n\r\npay")
	awaitWaiter(t, locks, receive(t, watch.acquired, "the hook"))
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != httplock.StatusClientGone || resp.ContentLength != 0 {
		t.Errorf("status %d, %d bytes, want %d and none", resp.StatusCode, resp.ContentLength, httplock.StatusClientGone)
	}
	close(stage.leave)
	receive(t, first, "the first answer").want(t, http.StatusOK)
}

func TestLockIsKeptUntilTheHandlerReturns(t *testing.T) {
	t.Parallel()
	stage, watch := newStage(t), newWatch()
	locks := newLocks(t, testkit.Start(t).Client(), watch.hooks())
	guard := ginlock.Exclusive(locks.Mutex, cart(), core.WithWait(0), unhurried)
	srv := serve(t, router(guard, stage.handle))
	ctx, leave := context.WithCancel(t.Context())
	first := postAside(ctx, srv, "ada", "7")
	running := receive(t, stage.entered, "the run")
	leave()
	receive(t, first, "the client's error")
	receive(t, running.Context().Done(), "the handler's context to end")
	post(t.Context(), srv, "ada", "7").want(t, http.StatusConflict)
	close(stage.leave)
	awaitFree(t, locks, receive(t, watch.acquired, "the hook"))
}

func TestSlowBodyHoldsNoLock(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	begun := make(chan struct{}, 2)
	key := func(r *http.Request) (httplock.Key, error) {
		begun <- struct{}{}
		return cart()(r)
	}
	guard := ginlock.Exclusive(locks.Mutex, key, core.WithWait(0), unhurried)
	srv := serve(t, router(guard, func(c *gin.Context) { _, _ = io.Copy(io.Discard, c.Request.Body) }))
	slow := dial(t, srv)
	write(t, slow, "POST /?cart=7 HTTP/1.1\r\nHost: x\r\nX-User: ada\r\nContent-Length: 3\r\n\r\npa")
	receive(t, begun, "the slow request")
	post(t.Context(), srv, "ada", "7").want(t, http.StatusOK)
	write(t, slow, "y")
	if status := readStatus(t, slow); status != http.StatusOK {
		t.Errorf("the slow request got %d", status)
	}
}

func TestBodyCutShortIsNotRun(t *testing.T) {
	t.Parallel()
	watch := newWatch()
	locks := newLocks(t, testkit.Start(t).Client(), watch.hooks())
	guard := ginlock.Exclusive(locks.Mutex, cart(), core.WithWait(patience))
	srv := serve(t, router(guard, func(*gin.Context) { t.Error("the handler ran") }))
	conn := dial(t, srv)
	write(t, conn, "POST /?cart=7 HTTP/1.1\r\nHost: x\r\nX-User: ada\r\nContent-Length: 3\r\n\r\npa")
	_ = conn.Close()
	if c := receive(t, watch.refused, "the refusal"); c.Code != httplock.CodeBodyUnreadable {
		t.Errorf("code %q, want body-unreadable", c.Code)
	}
}

func TestHandlerGetsTheWholeBody(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	const limit = 1000
	guard := ginlock.Exclusive(locks.Mutex, cart(), core.WithWait(patience), httplock.WithBodyLimit(limit))
	srv := serve(t, router(guard, func(c *gin.Context) {
		body, err := io.ReadAll(c.Request.Body)
		if err != nil {
			t.Error(err)
		}
		_, _ = c.Writer.Write(body)
	}))
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
				a := send(srv, req)
				a.want(t, http.StatusOK)
				if a.body != string(sent) {
					t.Errorf("%d bytes came back", len(a.body))
				}
			})
		}
	}
}

// An error of the body is the handler's to answer, as it would be without the guard.
func TestHandlerGetsTheErrorOfTheBody(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	guard := ginlock.Exclusive(locks.Mutex, cart(), core.WithWait(patience))
	srv := serve(t, http.MaxBytesHandler(router(guard, func(c *gin.Context) {
		if _, whole := c.Get(gin.BodyBytesKey); whole {
			t.Error("a body that failed counts as whole")
		}
		if text, err := io.ReadAll(c.Request.Body); err != nil {
			c.String(http.StatusRequestEntityTooLarge, string(text))
		}
	}), 2))
	a := post(t.Context(), srv, "ada", "7")
	a.want(t, http.StatusRequestEntityTooLarge)
	if a.body != "pa" {
		t.Errorf("the handler read %q before the error, want what was allowed", a.body)
	}
}

// The server removes the files of a form, though it was parsed from the guard's copy of the request.
func TestFilesOfFormAreRemoved(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	guard := ginlock.Exclusive(locks.Mutex, httplock.Constant("all"), core.WithWait(patience))
	srv := serve(t, router(guard, func(c *gin.Context) {
		if err := c.Request.ParseMultipartForm(1); err != nil {
			t.Error(err)
			return
		}
		file, err := c.Request.MultipartForm.File["f"][0].Open()
		if err != nil {
			t.Error(err)
			return
		}
		defer file.Close()
		c.String(http.StatusOK, file.(*os.File).Name())
	}))
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
	a := send(srv, req)
	a.want(t, http.StatusOK)
	testkit.Eventually(t, patience, "the file to be removed", func() bool {
		_, err := os.Stat(a.body)
		return errors.Is(err, os.ErrNotExist)
	})
}

// A guard that reads nothing ahead refuses a request before its client sends the body.
func TestRefusedBeforeContinue(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	stage := newStage(t)
	srv := serve(t, router(ginlock.Exclusive(locks.Mutex, cart(), core.WithWait(0), httplock.WithBodyLimit(0), unhurried), stage.handle))
	first := postAside(t.Context(), srv, "ada", "7")
	receive(t, stage.entered, "the first run")
	conn := dial(t, srv)
	write(t, conn, "POST /?cart=7 HTTP/1.1\r\nHost: x\r\nX-User: ada\r\nContent-Length: 1000000\r\n"+
		"Expect: 100-continue\r\n\r\n")
	if status := readStatus(t, conn); status != http.StatusConflict {
		t.Errorf("status %d, want 409 without 100 before it", status)
	}
	close(stage.leave)
	receive(t, first, "the first answer").want(t, http.StatusOK)
}

func TestAnswersBeforeTheServerStopsWriting(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	stage := newStage(t)
	guard := ginlock.Exclusive(locks.Mutex, cart(), core.WithWait(time.Hour))
	holder := serve(t, router(guard, stage.handle))
	unlimited := func(c *gin.Context) { // or a busy machine has its answer cut off
		_ = http.NewResponseController(c.Writer).SetWriteDeadline(time.Time{})
	}
	hurried := serve(t, router(unlimited, guard, stage.handle), func(srv *httptest.Server) { srv.Config.WriteTimeout = 2 * time.Second })
	first := postAside(t.Context(), holder, "ada", "7")
	receive(t, stage.entered, "the first run")
	a := post(t.Context(), hurried, "ada", "7")
	if p := a.problem(t); p.Code != httplock.CodeLockConflict {
		t.Errorf("code %q, want lock-conflict", p.Code)
	}
	close(stage.leave)
	receive(t, first, "the first answer").want(t, http.StatusOK)
}

func TestWriterIsPassedThrough(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	guard := ginlock.Exclusive(locks.Mutex, httplock.Constant("all"), core.WithWait(patience))
	var outer gin.ResponseWriter
	handler := func(c *gin.Context) {
		if c.Writer != outer {
			t.Errorf("the handler writes to a %T", c.Writer)
		}
		if err := http.NewResponseController(c.Writer).SetReadDeadline(time.Time{}); err != nil {
			t.Error(err)
		}
		conn, _, err := c.Writer.Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
	}
	srv := serve(t, router(func(c *gin.Context) { outer = c.Writer }, guard, handler))
	post(t.Context(), srv, "ada", "7").want(t, http.StatusAccepted)
}
