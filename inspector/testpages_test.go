package inspector_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/inspector"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// patience bounds what must happen, however slow the machine.
const patience = 30 * time.Second

// mount is where the tests have the page.
const mount = "/debug/holdfast/"

// site is a page that is mounted in a server, with a browser's cookies.
type site struct {
	*httptest.Server
	t      testing.TB
	client *http.Client
	page   *inspector.Handler
}

// newClient returns a client of the test's own.
func newClient(t testing.TB, rdb redis.UniversalClient, opts ...core.Option) *core.Client {
	t.Helper()
	locks, err := core.New(rdb, append([]core.Option{core.WithLogger(nil)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	return locks
}

// newSite mounts a page for a client.
func newSite(t testing.TB, locks *core.Client, opts ...inspector.Option) *site {
	t.Helper()
	page, err := inspector.New(locks, opts...)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(mount, page)
	return serve(t, mux, page)
}

// serve serves a handler until the test ends.
func serve(t testing.TB, handler http.Handler, page *inspector.Handler) *site {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	t.Cleanup(func() { _ = page.Close() }) // first, since the server waits for open pages
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := server.Client()
	client.Jar = jar
	return &site{server, t, client, page}
}

// do sends a request, and returns the answer with its body.
func (s *site) do(method, path string, form url.Values, header ...string) (*http.Response, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, s.URL+mount+path, strings.NewReader(form.Encode()))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp, string(body)
}

// get returns a page, which must answer with the status.
func (s *site) get(status int, path string) string {
	s.t.Helper()
	resp, body := s.do(http.MethodGet, path, nil)
	if resp.StatusCode != status {
		s.t.Fatalf("GET %s: status %d, want %d: %s", path, resp.StatusCode, status, body)
	}
	return body
}

// data reads a page as JSON.
func (s *site) data(path string, into any) {
	s.t.Helper()
	resp, body := s.do(http.MethodGet, path, nil, "Accept", "application/json")
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		s.t.Fatalf("GET %s: status %d: %s", path, resp.StatusCode, body)
	}
	if err := json.Unmarshal([]byte(body), into); err != nil {
		s.t.Fatal(err)
	}
}

var tokenField = regexp.MustCompile(`name="token" value="([^"]+)"`)

// token returns the token of the form of an action.
func (s *site) token(path string) string {
	s.t.Helper()
	found := tokenField.FindStringSubmatch(s.get(http.StatusOK, path))
	if found == nil {
		s.t.Fatalf("%s has no token", path)
	}
	return found[1]
}

var seenField = regexp.MustCompile(`name="seen" value="([^"]+)"`)

// form opens the form of an action, and returns its hidden fields.
func (s *site) form(path string) url.Values {
	s.t.Helper()
	body := s.get(http.StatusOK, path)
	form := url.Values{}
	for name, field := range map[string]*regexp.Regexp{"token": tokenField, "seen": seenField} {
		if found := field.FindStringSubmatch(body); found != nil {
			form.Set(name, found[1])
		}
	}
	return form
}

// act opens the form of an action, types the confirmation, and sends it.
func (s *site) act(status int, path, confirm string, more ...string) string {
	s.t.Helper()
	return s.send(status, path, s.form(path), append([]string{"confirm", confirm}, more...)...)
}

// send sends a form that was opened before, with further fields.
func (s *site) send(status int, path string, form url.Values, more ...string) string {
	s.t.Helper()
	for i := 0; i+1 < len(more); i += 2 {
		form.Set(more[i], more[i+1])
	}
	resp, body := s.do(http.MethodPost, path, form)
	if resp.StatusCode != status {
		s.t.Fatalf("POST %s: status %d, want %d: %s", path, resp.StatusCode, status, body)
	}
	return body
}

// mustLock acquires a lock that the test does not release.
func mustLock(t testing.TB, l *core.Lock, opts ...core.LockOption) *core.Lease {
	t.Helper()
	lease, err := l.TryLock(context.Background(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// wait lets a goroutine wait for a lock until the test ends.
func wait(t testing.TB, l *core.Lock) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if lease, err := l.Lock(ctx); err == nil {
			_ = lease.Unlock(context.Background())
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// contains fails the test for each text that a page lacks.
func contains(t testing.TB, body string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(body, text) {
			t.Errorf("the page lacks %q:\n%s", text, body)
		}
	}
}

// lacks fails the test for each text that a page has.
func lacks(t testing.TB, body string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(body, text) {
			t.Errorf("the page has %q:\n%s", text, body)
		}
	}
}

// logged returns a logger, and what it has written.
func logged() (*slog.Logger, *testkit.Log) {
	text := new(testkit.Log)
	return slog.New(slog.NewTextHandler(text, nil)), text
}

// asAda permits all actions.
func asAda(*http.Request) (string, error) { return "ada", nil }
