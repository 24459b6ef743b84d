package echo4lock_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/holdfast-go/holdfast/core"
	echo4lock "github.com/holdfast-go/holdfast/middleware/echo4"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

// TestFacts: what a handler asks its context.
func TestFacts(t *testing.T) {
	t.Parallel()
	e := newEcho()
	var ctx context.Context
	guard := idempotent(t, newLocks(t))
	e.POST("/", func(c echo.Context) error {
		ctx = c.Request().Context()
		token, found := core.TokenFrom(ctx)
		_, attempt := core.AttemptFrom(ctx)
		if !found || token == 0 || !attempt || core.KeyHash(ctx) == "" || httpkit.Attempt(ctx) != 1 || httplock.Degraded(ctx) {
			t.Errorf("token %d, %t, attempt %d, hash %q", token, found, httpkit.Attempt(ctx), core.KeyHash(ctx))
		}
		return core.Complete(ctx)
	}, guard.Wrap)
	if a := post(t, serve(t, e), "/", "k"); a.status != http.StatusOK || stateOf(t, guard, "k") != core.StateCompleted {
		t.Errorf("answered %+v, the record is %q", a, stateOf(t, guard, "k"))
	}
	if ctx.Err() == nil {
		t.Error("the context of the run has not ended")
	}
}

// TestFlush: a response that is flushed reaches the client while its handler still runs.
func TestFlush(t *testing.T) {
	t.Parallel()
	e, leave := newEcho(), make(chan struct{})
	e.POST("/", func(c echo.Context) error {
		c.Response().WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(c.Response(), "begun\n")
		if err := http.NewResponseController(c.Response()).Flush(); err != nil {
			return err
		}
		<-leave
		_, err := io.WriteString(c.Response(), "ended\n")
		return err
	}, idempotent(t, newLocks(t)).Wrap)
	srv := serve(t, e)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", "k")
	resp, err := srv.Client().Do(req)
	if err != nil {
		close(leave)
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body := bufio.NewReader(resp.Body)
	begun, err := body.ReadString('\n')
	close(leave)
	ended, _ := body.ReadString('\n')
	if err != nil || begun != "begun\n" || ended != "ended\n" {
		t.Errorf("read %q and %q, error %v", begun, ended, err)
	}
	if a := post(t, srv, "/", "k"); a.status != http.StatusUnprocessableEntity { // the body is another one
		t.Errorf("status %d, want 422: %s", a.status, a.body)
	}
}

// TestUpgrade: a handler takes over the connection, as one of WebSocket does, and has the lock until it returns.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	e := newEcho()
	guard := echo4lock.Exclusive(locks.Mutex, httplock.Constant("socket"), httplock.WithAskTimeout(patience),
		httplock.WithMethods(http.MethodGet, http.MethodPost), core.WithWait(0))
	e.GET("/", func(c echo.Context) error {
		conn, rw, err := http.NewResponseController(c.Response()).Hijack()
		if err != nil {
			return err
		}
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_ = rw.Flush()
		line, err := rw.ReadString('\n')
		if err != nil {
			return err
		}
		_, _ = rw.WriteString(line)
		return rw.Flush()
	}, guard)
	e.POST("/", func(echo.Context) error { return nil }, guard)
	srv := serve(t, e)
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	reader := bufio.NewReader(conn)
	resp, err := http.ReadResponse(reader, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("response %+v, error %v", resp, err)
	}
	if a := post(t, srv, "/", "k"); a.status != http.StatusConflict {
		t.Errorf("status %d beside the socket, want 409", a.status)
	}
	_, _ = io.WriteString(conn, "hello\n")
	if line, err := reader.ReadString('\n'); err != nil || line != "hello\n" {
		t.Errorf("read %q, error %v", line, err)
	}
}

// TestUnguarded: a request that the guard lets pass has the writer and the errors that it has without the guard.
func TestUnguarded(t *testing.T) {
	t.Parallel()
	e := newEcho()
	var inside, around *echo.Response
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			around = c.Response()
			return next(c)
		}
	})
	e.GET("/", func(c echo.Context) error {
		inside = c.Response()
		return echo.ErrNotFound
	}, idempotent(t, newLocks(t)).Wrap)
	w := httptest.NewRecorder()
	if e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil)); w.Code != http.StatusNotFound || inside != around {
		t.Errorf("answered %d, the handler's writer is %T, the real one %T", w.Code, inside, around)
	}
}

// TestMistakes: what is wrong with the arguments is told when the guard is made.
func TestMistakes(t *testing.T) {
	t.Parallel()
	locks, key := newLocks(t), httplock.Constant("x")
	for name, made := range map[string]func() error{
		"no strategy": func() error { _, err := echo4lock.NewExclusive(nil, key); return err },
		"no key":      func() error { _, err := echo4lock.NewExclusive(locks.Mutex, nil); return err },
		"no client":   func() error { _, err := echo4lock.NewOnce(nil, key); return err },
		"no scope":    func() error { _, err := echo4lock.NewIdempotent(locks, nil); return err },
		"no handler of refusals": func() error {
			_, err := echo4lock.NewOnce(locks, key, echo4lock.WithRefusalHandler(nil))
			return err
		},
	} {
		if made() == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for name, call := range map[string]func(){
		"zero guard": func() { new(echo4lock.Guard).Wrap(func(echo.Context) error { return nil }) },
		"no handler": func() { echo4lock.Once(locks, key)(nil) },
		"no key":     func() { echo4lock.Idempotent(locks, nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			call()
		}()
	}
}
