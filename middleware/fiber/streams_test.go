package fiberlock_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"runtime"
	"testing"

	"github.com/gofiber/fiber/v3"

	"github.com/holdfast-go/holdfast/core"
	fiberlock "github.com/holdfast-go/holdfast/middleware/fiber"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestStreams: the key is held until the writer of a stream has ended, and the stream is not recorded.
func TestStreams(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	record := idempotent(t, locks)
	for name, guard := range map[string]fiber.Handler{
		"exclusive":  fiberlock.Exclusive(locks.Mutex, httplock.Constant("stream"), unhurried(core.WithWait(0))...),
		"idempotent": record.Wrap,
	} {
		leave := make(chan struct{})
		var alive error
		app := fiber.New()
		app.Post("/", guard, func(c fiber.Ctx) error {
			ctx := c.Context()
			return c.Status(http.StatusAccepted).SendStreamWriter(func(w *bufio.Writer) {
				_, _ = w.WriteString("begun\n")
				_ = w.Flush()
				<-leave
				alive = ctx.Err()
				_, _ = w.WriteString("ended\n")
			})
		})
		srv := serve(t, app)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Idempotency-Key", "stream")
		resp, err := srv.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body := bufio.NewReader(resp.Body)
		begun, err := body.ReadString('\n')
		if err != nil || begun != "begun\n" || resp.StatusCode != http.StatusAccepted {
			t.Errorf("%s: status %d, read %q, error %v", name, resp.StatusCode, begun, err)
		}
		again := func() int {
			resp, err := srv.client.Do(req.Clone(t.Context()))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			_, _ = io.Copy(io.Discard, resp.Body)
			return resp.StatusCode
		}
		if got := again(); got != http.StatusConflict {
			t.Errorf("%s: status %d while the stream is written, want 409", name, got)
		}
		close(leave)
		rest, err := io.ReadAll(body)
		_ = resp.Body.Close()
		if err != nil || string(rest) != "ended\n" || alive != nil {
			t.Errorf("%s: read %q, error %v, the context had ended with %v", name, rest, err, alive)
		}
		want := map[string]int{"exclusive": http.StatusAccepted, "idempotent": http.StatusConflict}[name]
		if got := again(); got != want { // it was not recorded
			t.Errorf("%s: status %d after the stream, want %d", name, got, want)
		}
	}
	if got := stateOf(t, record, "stream"); got != core.StateCompleted {
		t.Errorf("the record is %q, want it completed", got)
	}
}

// TestStreamWhoseClientLeaves frees the lock.
func TestStreamWhoseClientLeaves(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	app := fiber.New()
	guard := fiberlock.Exclusive(locks.Mutex, httplock.Constant("left"), unhurried(core.WithWait(0))...)
	app.Post("/", guard, func(c fiber.Ctx) error {
		return c.SendStreamWriter(func(w *bufio.Writer) {
			for w.Flush() == nil {
				_, _ = w.WriteString("event\n")
			}
		})
	})
	app.Post("/next", guard, func(c fiber.Ctx) error { return c.SendStatus(http.StatusCreated) })
	srv := serve(t, app)
	conn, err := net.Dial("tcp", srv.addr)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
	if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	testkit.Eventually(t, patience, "the lock to be free", func() bool {
		return srv.post(t, "/next", "k").status == http.StatusCreated
	})
}

// TestUpgrade: the lock is held until the handler of a connection that was taken over has returned, as one of WebSocket does.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	app := fiber.New()
	guard := fiberlock.Exclusive(locks.Mutex, httplock.Constant("socket"),
		unhurried(httplock.WithMethods(http.MethodGet, http.MethodPost), core.WithWait(0))...)
	app.Get("/", guard, func(c fiber.Ctx) error {
		c.Set("Upgrade", "echo")
		c.Set("Connection", "Upgrade")
		c.RequestCtx().Hijack(func(conn net.Conn) {
			line, _ := bufio.NewReader(conn).ReadString('\n')
			_, _ = io.WriteString(conn, line)
		})
		c.Status(http.StatusSwitchingProtocols)
		return nil
	})
	app.Post("/", guard, func(c fiber.Ctx) error { return c.SendStatus(http.StatusCreated) })
	srv := serve(t, app)
	conn, err := net.Dial("tcp", srv.addr)
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
	for range 3 {
		runtime.GC() // which must not take the connection for one that nobody handles
		if a := srv.post(t, "/", "k"); a.status != http.StatusConflict {
			t.Errorf("status %d beside the socket, want 409", a.status)
		}
	}
	_, _ = io.WriteString(conn, "hello\n")
	if line, err := reader.ReadString('\n'); err != nil || line != "hello\n" {
		t.Errorf("read %q, error %v", line, err)
	}
	testkit.Eventually(t, patience, "the lock to be free", func() bool {
		return srv.post(t, "/", "k").status == http.StatusCreated
	})
}
