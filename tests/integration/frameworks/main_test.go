package frameworks_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/conformance/http"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// patience bounds what must happen, however slow the machine.
const patience = 30 * time.Second

func TestMain(m *testing.M) { testkit.VerifyWaitingMain(m) }

// asMiddleware returns a guard of either form as net/http has it.
func asMiddleware(guard httpconformance.Guard) func(http.Handler) http.Handler {
	if g, ok := guard.(*httplock.Guard); ok {
		return g.Wrap
	}
	return guard.(func(http.Handler) http.Handler)
}

// conform runs the suite with the adapter for net/http and the router of a framework.
func conform(t *testing.T, handler func(routes ...httpconformance.Route) http.Handler) {
	httpconformance.Run(t, httpconformance.Adapter{
		Exclusive: func(s core.Strategy, key httpconformance.Key, opts ...httplock.Option) (httpconformance.Guard, error) {
			return httplock.NewExclusive(s, key.Func(), opts...)
		},
		Once: func(c *core.Client, key httpconformance.Key, opts ...httplock.Option) (httpconformance.Guard, error) {
			return httplock.NewOnce(c, key.Func(), opts...)
		},
		Idempotent: func(c *core.Client, key httpconformance.Key, opts ...httplock.Option) (httpconformance.Guard, error) {
			return httplock.NewIdempotent(c, key.Func(), opts...)
		},
		Handler:     handler,
		OneProtocol: true,
	})
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

// unhurried are options for a busy machine, and for a key that is the Idempotency-Key alone.
func unhurried(opts ...httplock.Option) []httplock.Option {
	return append([]httplock.Option{
		httplock.WithAskTimeout(patience), httplock.WithFinishTimeout(patience),
	}, opts...)
}

// post sends a request with an Idempotency-Key.
func post(t testing.TB, srv *httptest.Server, key string) (*http.Response, string) {
	t.Helper()
	resp, err := send(t, srv, key)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// send is post, and returns the error of the connection.
func send(t testing.TB, srv *httptest.Server, key string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/orders/1", strings.NewReader("order"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", key)
	return srv.Client().Do(req)
}

// stateOf returns the state of the record of a key.
func stateOf(t testing.TB, locks *core.Client, key string) core.State {
	t.Helper()
	guard, err := httplock.NewIdempotent(locks, httplock.Unscoped())
	if err != nil {
		t.Fatal(err)
	}
	record, err := guard.Peek(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return record.State
}

// awaitEnd returns the state of the record of a key that is not in progress any more.
func awaitEnd(t testing.TB, locks *core.Client, key string) core.State {
	t.Helper()
	var state core.State
	testkit.Eventually(t, patience, "the end of the run", func() bool {
		state = stateOf(t, locks, key)
		return state != core.StateRunning
	})
	return state
}
