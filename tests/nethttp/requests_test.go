package nethttp_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

// counted answers 201 with how often it has run.
func counted() http.HandlerFunc {
	runs := 0
	return func(w http.ResponseWriter, r *http.Request) {
		runs++
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(strings.Repeat("x", runs)))
	}
}

// keyed makes a request of ada with the Idempotency-Key k.
func keyed(t *testing.T, srv *httptest.Server, method, path, body string, header ...string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-User", "ada")
	req.Header.Set("Idempotency-Key", "k")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return req
}

// TestMethodsInAnyCase: a handler may fold the case of the method, so a client must not get past the guard by it, nor have
// another key of the route.
func TestMethodsInAnyCase(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	srv := httpkit.Serve(t, httplock.Idempotent(locks, httplock.ByHeader("X-User"), unhurried)(counted()))
	for _, method := range []string{"post", "Post", "patch"} {
		req := keyed(t, srv, method, "/", "")
		req.Header.Del("Idempotency-Key")
		httpkit.Send(srv, req).Want(t, http.StatusBadRequest)
	}
	mux := http.NewServeMux()
	mux.Handle("/orders", httplock.Once(locks, httplock.Keys(httplock.ByRoute(), httplock.ByHeader("X-User")), unhurried)(counted()))
	srv = httpkit.Serve(t, mux)
	httpkit.Send(srv, keyed(t, srv, "POST", "/orders", "")).Want(t, http.StatusCreated)
	httpkit.Send(srv, keyed(t, srv, "pOsT", "/orders", "")).Want(t, http.StatusConflict)
}

// TestLimitInFrontOfTheKey: a body that a limit in front has cut is too large by that limit, for a key function and a comparison.
func TestLimitInFrontOfTheKey(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	for name, guard := range map[string]func(http.Handler) http.Handler{
		"key":        httplock.Exclusive(locks.Mutex, httplock.ByJSON("/id")),
		"comparison": httplock.Idempotent(locks, httplock.ByHeader("X-User"), unhurried),
	} {
		inside := guard(counted())
		srv := httpkit.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, 20)
			inside.ServeHTTP(w, r)
		}))
		a := httpkit.Send(srv, keyed(t, srv, "POST", "/", `{"id":7,"more":"0123456789"}`, "Content-Type", "application/json"))
		a.Want(t, http.StatusRequestEntityTooLarge)
		if !strings.Contains(a.Body, "payload-too-large") || !strings.Contains(a.Body, "more than 20 bytes") {
			t.Errorf("%s: %s", name, a.Body)
		}
	}
}

// TestEmptyDecompressedBody: a middleware in front decompresses the body to nothing, and the request still has the length of
// the compressed one. A body that was read in front is a mistake all the same.
func TestEmptyDecompressedBody(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	var nothing bytes.Buffer
	if err := gzip.NewWriter(&nothing).Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		front func(r *http.Request)
		want  int
	}{
		"gzip": {func(r *http.Request) {
			unzipped, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Error(err)
			}
			r.Body = unzipped
			r.Header.Del("Content-Encoding")
		}, http.StatusCreated},
		"without its length": {func(r *http.Request) {
			unzipped, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Error(err)
			}
			r.Body = io.NopCloser(unzipped)
			r.Header.Del("Content-Encoding")
			r.Header.Del("Content-Length")
		}, http.StatusCreated},
		"read": {func(r *http.Request) { _, _ = io.ReadAll(r.Body) }, http.StatusInternalServerError},
		"read and wrapped": {func(r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			r.Body = io.NopCloser(r.Body)
		}, http.StatusInternalServerError},
	} {
		inside := httplock.Idempotent(locks, httplock.ByHeader("X-User"), unhurried)(counted())
		srv := httpkit.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c.front(r)
			inside.ServeHTTP(w, r)
		}))
		req := keyed(t, srv, "POST", "/"+strings.ReplaceAll(name, " ", "-"), nothing.String(), "Content-Encoding", "gzip",
			"Idempotency-Key", strings.ReplaceAll(name, " ", "-"))
		if a := httpkit.Send(srv, req); a.Status != c.want {
			t.Errorf("%s: %d %s, want %d", name, a.Status, a.Body, c.want)
		}
	}
}

// TestComparedHeader: a header field may say what the operation is.
func TestComparedHeader(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	var seen http.Header
	guard := httplock.Idempotent(locks, httplock.ByHeader("X-User"), unhurried,
		httplock.WithComparedHeader("x-amz-target", "X-HTTP-Method-Override"),
		httplock.WithFingerprint(func(p httplock.Payload) []byte { seen = p.Header; return p.Body }))
	srv := httpkit.Serve(t, guard(counted()))
	httpkit.Send(srv, keyed(t, srv, "POST", "/", "", "X-Amz-Target", "Put", "X-Other", "1")).Want(t, http.StatusCreated)
	if len(seen) != 1 || seen.Get("X-Amz-Target") != "Put" {
		t.Errorf("the function of the fingerprint has seen %v", seen)
	}
	httpkit.Send(srv, keyed(t, srv, "POST", "/", "", "X-Amz-Target", "Put", "X-Other", "2")).Want(t, http.StatusCreated)
	for _, other := range [][]string{{"X-Amz-Target", "Delete"}, {}, {"X-Amz-Target", "Put", "X-HTTP-Method-Override", "DELETE"}} {
		httpkit.Send(srv, keyed(t, srv, "POST", "/", "", other...)).Want(t, http.StatusUnprocessableEntity)
	}
	if _, err := httplock.NewOnce(locks, httplock.ByHeader("X-User"), httplock.WithComparedHeader("X")); err == nil {
		t.Error("Once compares nothing, and takes a header to compare")
	}
	if _, err := httplock.NewIdempotent(locks, httplock.ByHeader("X-User"), httplock.WithComparedHeader("a b")); err == nil {
		t.Error("a name of no header field is taken")
	}
}

// TestCanonicalJSONIsTheSameRequest: the client's library writes the names in another order when it tries again.
func TestCanonicalJSONIsTheSameRequest(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	guard := httplock.Idempotent(locks, httplock.ByHeader("X-User"), unhurried, httplock.WithFingerprint(httplock.CanonicalJSON))
	srv := httpkit.Serve(t, guard(counted()))
	do := func(body string) httpkit.Answer {
		return httpkit.Send(srv, keyed(t, srv, "POST", "/", body, "Content-Type", "application/json"))
	}
	do(`{"a":1,"b":2}`).Want(t, http.StatusCreated)
	do(`{ "b": 2, "a": 1 }`).Want(t, http.StatusCreated)
	do(`{"a":1,"b":2.0}`).Want(t, http.StatusUnprocessableEntity)
}

// TestWildcardThatTheRouteLacks: the log names it, and what the route has. The client gets neither.
func TestWildcardThatTheRouteLacks(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	locks, err := core.New(testkit.Start(t).Client(), core.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{order}/items/{item...}", httplock.Exclusive(locks.Mutex, httplock.ByPathValue("ordr"))(counted()))
	srv := httpkit.Serve(t, mux)
	a := httpkit.Send(srv, keyed(t, srv, "POST", "/orders/secret/items/1", ""))
	a.Want(t, http.StatusInternalServerError)
	const want = `has no wildcard \"ordr\": it has only \"order\", \"item\"`
	if !strings.Contains(log.String(), want) || strings.Contains(log.String(), "secret") || strings.Contains(a.Body, "ordr") {
		t.Errorf("log %s, answer %s", log.String(), a.Body)
	}
	if _, err := httplock.PathKey("/orders/{order}", "ordr", "7"); err == nil || !strings.Contains(err.Error(), `it has only "order"`) {
		t.Errorf("%v", err)
	}
}

// TestKeyRequiredIsListedOnce: what is missing, and nothing more.
func TestKeyRequiredIsListedOnce(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	srv := httpkit.Serve(t, httplock.Idempotent(locks, httplock.ByHeader("X-User"), unhurried)(counted()))
	req := keyed(t, srv, "POST", "/", "")
	req.Header.Del("Idempotency-Key")
	if a := httpkit.Send(srv, req); !strings.Contains(a.Body, `"detail":"The header field Idempotency-Key is missing."`) {
		t.Errorf("%s", a.Body)
	}
	if a := httpkit.Send(srv, keyed(t, srv, "POST", "/", "", "Idempotency-Key", "a b")); !strings.Contains(a.Body,
		`"detail":"The header field Idempotency-Key has a space: a key consists of visible ASCII characters without spaces; the quotes around it are optional."`) {
		t.Errorf("%s", a.Body)
	}
}
