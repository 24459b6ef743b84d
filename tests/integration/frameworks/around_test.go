package frameworks_test

import (
	"compress/gzip"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	chimiddleware "github.com/go-chi/chi/v5/middleware"
	"github.com/gorilla/handlers"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// around are middlewares of others, which stand around a guard.
func around() map[string]func(http.Handler) http.Handler {
	return map[string]func(http.Handler) http.Handler{
		"gorilla's CompressHandler": handlers.CompressHandler,
		"gorilla's LoggingHandler":  func(h http.Handler) http.Handler { return handlers.LoggingHandler(io.Discard, h) },
		"gorilla's RecoveryHandler": handlers.RecoveryHandler(handlers.RecoveryLogger(log.New(io.Discard, "", 0))),
		"gorilla's CORS":            handlers.CORS(),
		"http.TimeoutHandler":       func(h http.Handler) http.Handler { return http.TimeoutHandler(h, time.Hour, "") },
		"chi's Compress":            chimiddleware.Compress(5),
		"chi's Timeout":             chimiddleware.Timeout(time.Hour),
		"chi's Recoverer":           chimiddleware.Recoverer,
		"chi's RequestSize":         chimiddleware.RequestSize(1 << 20),
	}
}

// answers are handlers that write in all kinds of ways.
func answers() map[string]http.HandlerFunc {
	page := "<html>" + strings.Repeat("pen ", 1000)
	return map[string]http.HandlerFunc{
		"status": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) },
		"none":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"write":  func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, page) },
		"short":  func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
		"typed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, `{"pens":[`+strings.Repeat("7,", 1000)+`7]}`)
		},
		"flushed": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, page)
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, page)
		},
		"large":    func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat(page, 100)) },
		"error":    func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no such pen", http.StatusNotFound) },
		"redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/pens", http.StatusSeeOther) },
	}
}

// plainly is an answer as a client understands it.
type plainly struct {
	status int
	header http.Header
	body   string
}

// understand sends a request, with that coding accepted, and decodes the answer.
func understand(t testing.TB, srv *httptest.Server, key, coding string) plainly {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/orders/1", strings.NewReader("order"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", key)
	req.Header.Set("Accept-Encoding", coding) // and the transport decodes nothing
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for _, name := range []string{"Date", "Content-Length"} { // compressed, the length depends on the calls of Write
		resp.Header.Del(name)
	}
	body := io.Reader(resp.Body)
	if resp.Header.Get("Content-Encoding") == "gzip" {
		if body, err = gzip.NewReader(resp.Body); err != nil {
			return plainly{resp.StatusCode, resp.Header, "no gzip: " + err.Error()}
		}
	}
	text, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return plainly{resp.StatusCode, resp.Header, string(text)}
}

// TestMiddlewaresAround: behind a middleware of others, a client gets what it gets without the guard, and its retry, or one
// that reads another coding, the same again.
func TestMiddlewaresAround(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	for name, middleware := range around() {
		for kind, guard := range map[string]func(http.Handler) http.Handler{
			"Exclusive":  httplock.Exclusive(locks.Mutex, httplock.Constant(name), core.WithWait(patience)),
			"Idempotent": httplock.Idempotent(locks, httplock.Constant(name), unhurried(core.WithMaxValue(1<<20))...),
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				for how, answer := range answers() {
					plain, guarded := httptest.NewServer(middleware(answer)), httptest.NewServer(middleware(guard(answer)))
					for _, srv := range []*httptest.Server{plain, guarded} {
						srv.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
					}
					for _, coding := range []string{"gzip", "identity"} {
						want := understand(t, plain, how, coding)
						sameAnswer(t, how+", "+coding, understand(t, guarded, how+coding, coding), want)
						if kind == "Exclusive" {
							continue
						}
						for _, again := range []string{"gzip", "identity"} {
							want, got := understand(t, plain, how, again), understand(t, guarded, how+coding, again)
							if got.header.Get("Idempotency-Replayed") != "true" {
								t.Errorf("%s, %s, then %s: no replay: %d %v", how, coding, again, got.status, got.header)
							}
							want.header = maps.Clone(want.header)
							want.header.Set("Idempotency-Replayed", "true")
							want.header.Set("Cache-Control", "no-store")
							for _, h := range []http.Header{want.header, got.header} { // chi compresses what has a type, as replays have
								h.Del("Content-Encoding")
								h.Del("Vary")
							}
							sameAnswer(t, how+", "+coding+", then "+again, got, want)
						}
					}
					plain.Close()
					guarded.Close()
				}
			})
		}
	}
}

func sameAnswer(t testing.TB, name string, got, want plainly) {
	t.Helper()
	if got.status != want.status || got.body != want.body {
		t.Errorf("%s: %d %.60q, without guard %d %.60q", name, got.status, got.body, want.status, want.body)
	}
	if !maps.EqualFunc(got.header, want.header, func(a, b []string) bool { return strings.Join(a, ",") == strings.Join(b, ",") }) {
		t.Errorf("%s: header %v, without guard %v", name, got.header, want.header)
	}
}
