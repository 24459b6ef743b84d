package echo4lock_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/holdfast-go/holdfast/core"
	echo4lock "github.com/holdfast-go/holdfast/middleware/echo4"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// patience bounds what must happen, however slow the machine.
const patience = 30 * time.Second

func TestMain(m *testing.M) { testkit.VerifyWaitingMain(m) }

// newEcho returns an Echo that logs nothing.
func newEcho() *echo.Echo {
	e := echo.New()
	e.Logger.SetOutput(io.Discard)
	return e
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

// idempotent is a guard whose key is the Idempotency-Key alone, with time for a busy machine.
func idempotent(t testing.TB, locks *core.Client, opts ...httplock.Option) *echo4lock.Guard {
	t.Helper()
	guard, err := echo4lock.NewIdempotent(locks, httplock.Unscoped(), append([]httplock.Option{
		httplock.WithAskTimeout(patience), httplock.WithFinishTimeout(patience),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

// serve runs a server on a socket until the test ends.
func serve(t testing.TB, h http.Handler) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // handlers panic on purpose
	srv.Start()
	t.Cleanup(srv.Close)
	return srv
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
func post(t testing.TB, srv *httptest.Server, path, key string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+path, strings.NewReader("order"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", key)
	resp, err := srv.Client().Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{status: resp.StatusCode, header: resp.Header, body: string(body), err: err}
}

// stateOf returns the state of the record of an Idempotency-Key.
func stateOf(t testing.TB, guard *echo4lock.Guard, key string) core.State {
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
