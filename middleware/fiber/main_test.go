package fiberlock_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/core"
	fiberlock "github.com/holdfast-go/holdfast/middleware/fiber"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// patience bounds what must happen, however slow the machine.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	// fasthttp has one clock for the process, which it never stops.
	testkit.VerifyWaitingMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
}

// newLocks returns a client of the test's own.
func newLocks(t testing.TB) *core.Client {
	t.Helper()
	locks, err := core.New(testkit.Start(t).Client(), core.WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	return locks
}

// unhurried are options for a busy machine.
func unhurried(opts ...httplock.Option) []httplock.Option {
	return append([]httplock.Option{httplock.WithAskTimeout(patience), httplock.WithFinishTimeout(patience)}, opts...)
}

// idempotent is a guard whose key is the Idempotency-Key alone.
func idempotent(t testing.TB, locks *core.Client, opts ...httplock.Option) *fiberlock.Guard {
	t.Helper()
	guard, err := fiberlock.NewIdempotent(locks, httplock.Unscoped(), unhurried(opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

// server is an app on a socket, and a client with one connection at a time.
type server struct {
	url, addr string
	client    *http.Client
}

func serve(t testing.TB, app *fiber.App) *server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- app.Listener(listener, fiber.ListenConfig{DisableStartupMessage: true}) }()
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = app.ShutdownWithTimeout(patience)
		<-ended
	})
	addr := listener.Addr().String()
	return &server{"http://" + addr, addr, &http.Client{Transport: transport}}
}

// answer is what a client gets.
type answer struct {
	status int
	header http.Header
	body   string
	err    error
}

func (a answer) replayed() bool { return a.header.Get("Idempotency-Replayed") == "true" }

// post sends a request with an Idempotency-Key.
func (s *server) post(t testing.TB, path, key string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+path, strings.NewReader("order"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", key)
	resp, err := s.client.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{status: resp.StatusCode, header: resp.Header, body: string(body), err: err}
}

// stateOf returns the state of the record of an Idempotency-Key.
func stateOf(t testing.TB, guard *fiberlock.Guard, key string) core.State {
	t.Helper()
	part, err := httplock.IdempotencyKey(key)
	if err != nil {
		t.Fatal(err)
	}
	scope, err := httplock.Unscoped()(nil)
	if err != nil {
		t.Fatal(err)
	}
	joined, err := httplock.Join(scope, part)
	if err != nil {
		t.Fatal(err)
	}
	record, err := guard.PeekKey(t.Context(), joined)
	if err != nil {
		t.Fatal(err)
	}
	return record.State
}
