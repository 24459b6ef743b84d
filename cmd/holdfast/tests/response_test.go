package holdfast_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/middleware"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestResolveWithResponse: a payment fails behind a guard that holds failures. The operator finds that the money has moved, and
// writes the response that the client's retry gets.
func TestResolveWithResponse(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	url, locks := urlOf(srv), newLocks(t, srv)
	guard := httplock.Idempotent(locks, httplock.ByHeader("X-User"), httplock.WithFailurePolicy(core.HoldFailures))
	site := httptest.NewServer(guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
	})))
	t.Cleanup(site.Close)
	pay := func(key string) (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, site.URL, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-User", "ada")
		req.Header.Set("Idempotency-Key", key)
		resp, err := site.Client().Do(req)
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
	unknown := func(key string) (name string) {
		t.Helper()
		if resp, body := pay(key); resp.StatusCode != http.StatusInternalServerError {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
		if resp, body := pay(key); resp.StatusCode != http.StatusConflict || !strings.Contains(body, middleware.CodeOutcomeUnknown) {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
		got := run(t, url, "http-key", "--part", "header:X-User=ada", "--idempotency-key", key)
		return strings.TrimSpace(got.stdout)
	}
	const answer = "HTTP/1.1 201 Created\nContent-Type: application/json\nLocation: /payments/7\n\n{\"id\":7}\n"
	file := filepath.Join(t.TempDir(), "answer")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	retry := func(key string) {
		t.Helper()
		resp, body := pay(key)
		if resp.StatusCode != http.StatusCreated || body != "{\"id\":7}\n" || resp.Header.Get("Idempotency-Replayed") != "true" ||
			resp.Header.Get("Location") != "/payments/7" || resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%d %v %q", resp.StatusCode, resp.Header, body)
		}
	}

	name := unknown("from-file")
	for text, want := range map[string]string{
		"{\"id\":7}":                                           "a status line such as",
		"HTTP/1.1 200 OK\nConnection: close\n\n":               "leave out Connection",
		"HTTP/1.1 200 OK\n\n" + strings.Repeat("x", 256<<10+1): "at most",
	} {
		write(text)
		run(t, url, "resolve", name, "--yes", "--response", file).want(t, 64, "", want)
	}
	write(answer)
	run(t, url, "resolve", "charge:7", "--yes", "--response", file).want(t, 64, "", "--value")
	run(t, url, "resolve", name, "--yes", "--response", file, "--value", file).want(t, 64, "", "can't be used together")
	run(t, url, "resolve", name, "--yes", "--response", file).want(t, 0, "", "")
	retry("from-file")

	cmd := command(t, url, "resolve", unknown("from-stdin"), "--yes", "--response", "-")
	cmd.Stdin = strings.NewReader(answer)
	finish(t, cmd).want(t, 0, "", "")
	retry("from-stdin")
}
