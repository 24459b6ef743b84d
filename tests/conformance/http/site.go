package httpconformance

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// patience bounds what must happen, however slow the machine.
const patience = 30 * time.Second

// newLocks returns a client of its own, as every instance of a service has one.
func newLocks(t testing.TB, rdb redis.UniversalClient, opts ...core.Option) *core.Client {
	t.Helper()
	locks, err := core.New(rdb, append(opts, core.WithLogger(nil))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() }) // fails where the test has killed Redis
	return locks
}

// site is a server on a socket.
type site struct {
	*httptest.Server
	t testing.TB
}

// serve runs a server until the test ends. Each edit may change it.
func (s *suite) serve(t testing.TB, h http.Handler, edit ...func(*httptest.Server)) *site {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // handlers panic on purpose
	srv.EnableHTTP2 = s.http2
	// With the default of 250 streams a crowd opens further connections, each a TLS handshake; Go's server resets
	// those whose SETTINGS do not arrive within 2 s, which a busy machine exceeds.
	srv.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 1000}
	for _, fn := range edit {
		fn(srv)
	}
	if s.http2 {
		srv.StartTLS()
	} else {
		srv.Start()
	}
	t.Cleanup(srv.Close)
	return &site{srv, t}
}

// mount runs a server whose one route is guarded.
func (s *suite) mount(t testing.TB, h http.Handler, guards ...Guard) *site {
	t.Helper()
	return s.serve(t, s.Handler(Route{Path: "/orders/{id}", Guards: guards, Handler: h}))
}

// must is for guards that are built without fault.
func must(t testing.TB) func(Guard, error) Guard {
	return func(g Guard, err error) Guard {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
}

// exclusive, once and idempotent are guards by user that give a busy machine its time.
func (s *suite) exclusive(t testing.TB, opts ...httplock.Option) Guard {
	t.Helper()
	return must(t)(s.Exclusive(s.locks.Mutex, ByUser, unhurried(opts, core.WithWait(patience))...))
}

func (s *suite) once(t testing.TB, opts ...httplock.Option) Guard {
	t.Helper()
	return must(t)(s.Once(s.locks, ByUser, unhurried(opts)...))
}

func (s *suite) idempotent(t testing.TB, opts ...httplock.Option) Guard {
	t.Helper()
	return must(t)(s.Idempotent(s.locks, ByUser, unhurried(opts)...))
}

func unhurried(opts []httplock.Option, more ...httplock.Option) []httplock.Option {
	return slices.Concat(
		[]httplock.Option{httplock.WithAskTimeout(patience), httplock.WithFinishTimeout(patience)}, more, opts,
	)
}

// request is what a client sends.
type request struct {
	method string // POST if empty
	path   string // /orders/1 if empty
	user   string
	key    string // the Idempotency-Key, none if empty
	body   string
	header http.Header
	source io.Reader // of the body, instead of body
}

func (x *site) request(ctx context.Context, r request) *http.Request {
	method, path, body := r.method, r.path, r.source
	if method == "" {
		method = http.MethodPost
	}
	if path == "" {
		path = "/orders/1"
	}
	if body == nil {
		body = strings.NewReader(r.body)
	}
	req, err := http.NewRequestWithContext(ctx, method, x.URL+path, body)
	if err != nil {
		panic(err) // not with what the suite sends
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	if r.user != "" {
		req.Header.Set("X-User", r.user)
	}
	if r.key != "" {
		req.Header.Set("Idempotency-Key", r.key)
	}
	return req
}

func (x *site) do(r request) answer { return x.doWithin(x.t.Context(), r) }

func (x *site) doWithin(ctx context.Context, r request) answer {
	resp, err := x.Client().Do(x.request(ctx, r))
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{status: resp.StatusCode, header: resp.Header, body: string(body), close: resp.Close, err: err}
}

// aside is doWithin in the background.
func (x *site) aside(ctx context.Context, r request) <-chan answer {
	done := make(chan answer, 1)
	go func() { done <- x.doWithin(ctx, r) }()
	return done
}

// answer is what a client gets.
type answer struct {
	status int
	header http.Header
	body   string
	close  bool
	err    error
}

func (a answer) want(t testing.TB, status int) answer {
	t.Helper()
	if a.err != nil || a.status != status {
		t.Fatalf("status %d, error %v, want %d: %s", a.status, a.err, status, a.body)
	}
	return a
}

// problem is what a client reads, written down apart from the code that is tested.
type problem struct {
	Type       string `json:"type"`
	Title      string `json:"title"`
	Status     int    `json:"status"`
	Detail     string `json:"detail"`
	Code       string `json:"code"`
	RetryAfter int    `json:"retry_after"`
	Retryable  bool   `json:"retryable"`
}

// refused checks that the answer is a problem of one of these codes and returns it.
func (a answer) refused(t testing.TB, status int, codes ...string) problem {
	t.Helper()
	a.want(t, status)
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		t.Fatalf("status %d, Content-Type %q, want a problem: %s", a.status, got, a.body)
	}
	var p problem
	if err := json.Unmarshal([]byte(a.body), &p); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(codes, p.Code) || p.Status != status {
		t.Fatalf("code %q, status %d in the problem, want %q, %d", p.Code, p.Status, codes, status)
	}
	return p
}

// replayed checks that the answer was recorded before.
func (a answer) replayed(t testing.TB, status int, body string) answer {
	t.Helper()
	a.want(t, status)
	if a.header.Get("Idempotency-Replayed") != "true" || a.body != body {
		t.Fatalf("body %q, header %v, want a replay of %q", a.body, a.header, body)
	}
	return a
}

// fresh checks that the answer is the handler's own.
func (a answer) fresh(t testing.TB, status int, body string) answer {
	t.Helper()
	a.want(t, status)
	if a.header.Get("Idempotency-Replayed") != "" || a.body != body {
		t.Fatalf("body %q, header %v, want %q of the handler itself", a.body, a.header, body)
	}
	return a
}

// nowhere is a connection to a Redis that is not there. It dials once per command, where the default dials for two seconds.
func nowhere(t testing.TB) redis.UniversalClient {
	rdb := redis.NewClient(&redis.Options{
		Network: "unix", Addr: t.TempDir() + "/none", DialerRetries: 1, MaxRetries: -1,
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}
