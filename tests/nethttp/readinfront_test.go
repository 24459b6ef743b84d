package nethttp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/middleware"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

// TestBodyReadBetweenGuards: the outer guard has buffered the beginning of a body, of which a middleware has read more. The
// inner guard does not compare the beginning alone.
func TestBodyReadBetweenGuards(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	for name, test := range map[string]struct {
		read          func(*http.Request)
		status, other int
	}{
		"parsed": {func(r *http.Request) { _ = r.ParseForm() }, http.StatusOK, http.StatusUnprocessableEntity},
		"read": {
			func(r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) },
			http.StatusInternalServerError, http.StatusInternalServerError,
		},
	} {
		outer := httplock.Exclusive(locks.Mutex, httplock.Constant(name), patient)
		inner := httplock.Idempotent(locks, httplock.Constant(name), patient)
		handler := inner(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		srv := httpkit.Serve(t, outer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			test.read(r)
			handler.ServeHTTP(w, r)
		})))
		long := "note=" + strings.Repeat("x", 100<<10) + "&amount="
		for _, known := range []bool{true, false} {
			postForm(t, srv, long+"5", known).Want(t, test.status)
			postForm(t, srv, long+"900", known).Want(t, test.other)
		}
	}
}

// TestKeyFunctionParsesTheForm: a key function of the application may use up the body like a program in front.
func TestKeyFunctionParsesTheForm(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	user := func(r *http.Request) (httplock.Key, error) { return httplock.NewKey("user", r.PostFormValue("user")) }
	srv := httpkit.Serve(t, httplock.Idempotent(locks, user, patient)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	for _, known := range []bool{true, false} {
		postForm(t, srv, "user=ada&amount=5", known).Want(t, http.StatusOK)
		p := postForm(t, srv, "user=ada&amount=900", known).Problem(t)
		if p.Code != middleware.CodeKeyReused {
			t.Errorf("code %q, want key-reused", p.Code)
		}
	}
}

// postForm sends a form with the Idempotency-Key "k". The server learns its length if it is known.
func postForm(t *testing.T, srv *httptest.Server, text string, known bool) httpkit.Answer {
	t.Helper()
	body := io.Reader(strings.NewReader(text))
	if !known {
		body = io.MultiReader(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Idempotency-Key", "k")
	return httpkit.Send(srv, req)
}
