package echoconformance

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

// testFacts: what a handler asks its context.
func testFacts[C Context](t *testing.T, a Adapter[C]) {
	e := a.New(nil)
	var ctx context.Context
	guard := a.idempotent(t, newLocks(t))
	e.Handle(http.MethodPost, "/", func(c C) error {
		ctx = c.Request().Context()
		token, found := core.TokenFrom(ctx)
		_, attempt := core.AttemptFrom(ctx)
		if !found || token == 0 || !attempt || core.KeyHash(ctx) == "" || httpkit.Attempt(ctx) != 1 || httplock.Degraded(ctx) {
			t.Errorf("token %d, %t, attempt %d, hash %q", token, found, httpkit.Attempt(ctx), core.KeyHash(ctx))
		}
		return core.Complete(ctx)
	}, guard.Wrap)
	if got := post(t, httpkit.Serve(t, e), "/", "k"); got.Status != http.StatusOK || stateOf(t, guard, "k") != core.StateCompleted {
		t.Errorf("answered %+v, the record is %q", got, stateOf(t, guard, "k"))
	}
	if ctx.Err() == nil {
		t.Error("the context of the run has not ended")
	}
}

// testFlush: a response that is flushed reaches the client while its handler still runs.
func testFlush[C Context](t *testing.T, a Adapter[C]) {
	e, leave := a.New(nil), make(chan struct{})
	e.Handle(http.MethodPost, "/", func(c C) error {
		a.Writer(c).WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(a.Writer(c), "begun\n")
		if err := http.NewResponseController(a.Writer(c)).Flush(); err != nil {
			return err
		}
		<-leave
		_, err := io.WriteString(a.Writer(c), "ended\n")
		return err
	}, a.idempotent(t, newLocks(t)).Wrap)
	srv := httpkit.Serve(t, e)
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
	if got := post(t, srv, "/", "k"); got.Status != http.StatusUnprocessableEntity { // the body is another one
		t.Errorf("status %d, want 422: %s", got.Status, got.Body)
	}
}

// testUpgrade: a handler takes over the connection, as one of WebSocket does, and has the lock until it returns.
func testUpgrade[C Context](t *testing.T, a Adapter[C]) {
	locks := newLocks(t)
	e := a.New(nil)
	guard := a.exclusive(t, locks, httplock.Constant("socket"), httplock.WithMethods(http.MethodGet, http.MethodPost), core.WithWait(0))
	e.Handle(http.MethodGet, "/", func(c C) error {
		conn, rw, err := http.NewResponseController(a.Writer(c)).Hijack()
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
	e.Handle(http.MethodPost, "/", func(C) error { return nil }, guard)
	srv := httpkit.Serve(t, e)
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
	if got := post(t, srv, "/", "k"); got.Status != http.StatusConflict {
		t.Errorf("status %d beside the socket, want 409", got.Status)
	}
	_, _ = io.WriteString(conn, "hello\n")
	if line, err := reader.ReadString('\n'); err != nil || line != "hello\n" {
		t.Errorf("read %q, error %v", line, err)
	}
}

// testUnguarded: a request that the guard lets pass has the writer and the errors that it has without the guard.
func testUnguarded[C Context](t *testing.T, a Adapter[C]) {
	e := a.New(nil)
	var inside, around http.ResponseWriter
	e.Use(func(next Handler[C]) Handler[C] {
		return func(c C) error {
			around = a.Writer(c)
			return next(c)
		}
	})
	e.Handle(http.MethodGet, "/", func(c C) error {
		inside = a.Writer(c)
		return a.HTTPError(http.StatusNotFound, "", nil)
	}, a.idempotent(t, newLocks(t)).Wrap)
	w := httptest.NewRecorder()
	if e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil)); w.Code != http.StatusNotFound || inside != around {
		t.Errorf("answered %d, the handler's writer is %T, the real one %T", w.Code, inside, around)
	}
}

// testMistakes: what is wrong with the arguments is told when the guard is made.
func testMistakes[C Context](t *testing.T, a Adapter[C]) {
	locks, key := newLocks(t), httplock.Constant("x")
	for name, made := range map[string]func() error{
		"no strategy": func() error { _, err := a.NewExclusive(nil, key); return err },
		"no key":      func() error { _, err := a.NewExclusive(locks.Mutex, nil); return err },
		"no client":   func() error { _, err := a.NewOnce(nil, key); return err },
		"no scope":    func() error { _, err := a.NewIdempotent(locks, nil); return err },
		"no handler of refusals": func() error {
			_, err := a.NewOnce(locks, key, a.Refusal(nil))
			return err
		},
	} {
		if made() == nil {
			t.Errorf("%s: no error", name)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a guard of no handler: no panic")
		}
	}()
	a.exclusive(t, locks, key)(nil)
}

// testBodyLimit: a body of unknown length that is larger than Echo's BodyLimit in front of the guard gets 413, as without the guard.
func testBodyLimit[C Context](t *testing.T, a Adapter[C]) {
	locks, form := newLocks(t), httplock.ByForm("order")
	for name, guard := range map[string]Middleware[C]{
		"none":       func(next Handler[C]) Handler[C] { return next },
		"exclusive":  a.exclusive(t, locks, httplock.Constant("k")),
		"by-a-form":  a.exclusive(t, locks, form),
		"idempotent": a.idempotent(t, locks).Wrap,
		"nested": func(next Handler[C]) Handler[C] {
			return a.exclusive(t, locks, httplock.Constant("outer"))(a.idempotent(t, locks).Wrap(next))
		},
	} {
		e := a.New(nil)
		e.Use(a.BodyLimit)
		e.Handle(http.MethodPost, "/", func(c C) error {
			_, err := io.Copy(io.Discard, c.Request().Body)
			return err
		}, guard)
		srv := httpkit.Serve(t, e)
		for body, want := range map[string]int{"order": http.StatusOK, "order=1": http.StatusRequestEntityTooLarge} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, struct{ io.Reader }{strings.NewReader(body)})
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set("Idempotency-Key", name+"-"+body)
			if got := httpkit.Send(srv, req); got.Status != want && !(name == "by-a-form" && want == http.StatusOK) {
				t.Errorf("%s, %q: status %d, want %d: %s", name, body, got.Status, want, got.Body)
			}
		}
	}
}
