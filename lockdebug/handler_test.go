package lockdebug_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/lockdebug"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

// get returns the answer to a request.
func get(h http.Handler, method, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, target, nil))
	return w
}

// report is the JSON of the page.
type report struct {
	At            time.Time
	Held, Waiting []map[string]any
}

func readJSON(t *testing.T, h http.Handler) (r report) {
	t.Helper()
	w := get(h, http.MethodGet, "/debug/locks?format=json")
	if kind := w.Header().Get("Content-Type"); w.Code != http.StatusOK || kind != "application/json; charset=utf-8" {
		t.Errorf("status %d, type %q", w.Code, kind)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil {
		t.Fatalf("%v in %s", err, w.Body)
	}
	return r
}

// TestHandler: the page shows leases and waiting calls of all sources, as text and as JSON, also while Redis does not reply.
func TestHandler(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks, other := client(t, server), client(t, server)
	page := lockdebug.Handler(locks, lockdebug.WithSources(other))
	if r := readJSON(t, page); r.Held == nil || r.Waiting == nil || len(r.Held)+len(r.Waiting) > 0 {
		t.Errorf("without locks: %+v", r)
	}
	lease, err := locks.Semaphore("line\nbreak", 5).Lock(t.Context(), core.WithPermits(3), core.WithFixedTTL(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := locks.Once("once").Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = other.Write("line\nbreak").Lock(t.Context()) }()
	testkit.Eventually(t, time.Minute, "the call to wait", func() bool { return len(other.Waiting()) == 1 })
	server.Pause()
	r := readJSON(t, page)
	if len(r.Held) != 2 || r.Held[0]["name"] != "line\nbreak" || r.Held[0]["mode"] != "semaphore" || r.Held[0]["permits"] != 3.0 ||
		r.Held[0]["ttl_ms"] != 60000.0 || r.Held[0]["renewed"] != false || r.Held[0]["token"] != float64(lease.Token()) ||
		r.Held[1]["mode"] != "once" || r.Held[1]["renewed"] != true {
		t.Errorf("held: %+v", r.Held)
	}
	if len(r.Waiting) != 1 || r.Waiting[0]["mode"] != "write" || r.Waiting[0]["position"] != 1.0 || r.Waiting[0]["in_redis"] != true {
		t.Errorf("waiting: %+v", r.Waiting)
	}
	text := get(page, http.MethodGet, "/debug/locks").Body.String()
	for _, want := range []string{`2 held, 1 waiting, at `, `"line\nbreak"  semaphore, 3 permits`, "1m0s, fixed", `"once"`, "1 in Redis", lease.Owner()} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	server.Resume()
}

// client returns a client that lasts for the test.
func client(t *testing.T, server *testkit.Server) *core.Client {
	t.Helper()
	locks, err := core.New(server.Client(), core.WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	return locks
}

// TestHandlerRequests: only reads are answered, and no cache keeps the answer.
func TestHandlerRequests(t *testing.T) {
	t.Parallel()
	locks := client(t, testkit.Start(t))
	page := lockdebug.Handler(locks)
	if w := get(page, http.MethodPost, "/"); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d, %v", w.Code, w.Header())
	}
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		w := get(page, method, "/")
		if w.Code != http.StatusOK || w.Header().Get("Cache-Control") != "no-store" ||
			w.Header().Get("Content-Type") != "text/plain; charset=utf-8" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d, %v", method, w.Code, w.Header())
		}
	}
	for name, build := range map[string]func(){
		"nil source":         func() { lockdebug.Handler(nil) },
		"nil further source": func() { lockdebug.Handler(locks, lockdebug.WithSources(nil)) },
		"nil option":         func() { lockdebug.Handler(locks, nil) },
		"no host":            func() { lockdebug.Handler(locks, lockdebug.WithHosts()) },
		"port":               func() { lockdebug.Handler(locks, lockdebug.WithHosts("localhost:6060")) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			build()
		}()
	}
}

// TestHosts: a request for another host than the named ones gets nothing, so a name of another site may point to this address.
func TestHosts(t *testing.T) {
	t.Parallel()
	locks := client(t, testkit.Start(t))
	if _, err := locks.Mutex("secret").Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(lockdebug.Handler(locks, lockdebug.WithHosts("localhost", "127.0.0.1", "::1")))
	defer server.Close()
	for host, want := range map[string]int{
		"localhost:6060": 200, "LOCALHOST": 200, "127.0.0.1:1": 200, "[::1]:6060": 200,
		"evil.example": 421, "evil.example:6060": 421, "localhost.evil.example": 421,
	} {
		for _, path := range []string{"/", "/?format=json"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = host
			resp, err := server.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || resp.StatusCode != want || strings.Contains(string(body), "secret") != (want == 200) {
				t.Errorf("%s%s: status %d, error %v, want %d: %s", host, path, resp.StatusCode, err, want, body)
			}
		}
	}
}

// TestLongName: one long name does not widen the lines of all others. JSON has all of it.
func TestLongName(t *testing.T) {
	t.Parallel()
	locks := client(t, testkit.Start(t))
	page, name := lockdebug.Handler(locks), strings.Repeat("n", 500)
	for _, name := range []string{name, "short"} {
		if _, err := locks.Mutex(name).Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for line := range strings.Lines(get(page, http.MethodGet, "/debug/locks").Body.String()) {
		if len(line) > 250 {
			t.Errorf("%d bytes: %s", len(line), line)
		}
	}
	if r := readJSON(t, page); len(r.Held) != 2 || r.Held[0]["name"] != name {
		t.Errorf("%+v", r.Held)
	}
}
