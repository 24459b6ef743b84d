package httpkit

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

func HTTP2(srv *httptest.Server) { srv.EnableHTTP2 = true }

// Patience bounds what must happen, however slow the machine.
const Patience = 20 * time.Second

// Serve runs a server on a socket until the test ends. Each edit may change it.
func Serve(t testing.TB, h http.Handler, edit ...func(*httptest.Server)) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // handlers panic on purpose
	for _, fn := range edit {
		fn(srv)
	}
	if srv.EnableHTTP2 {
		srv.StartTLS()
	} else {
		srv.Start()
	}
	t.Cleanup(srv.Close)
	return srv
}

type Answer struct {
	Status int
	Header http.Header
	Body   string
	Err    error
}

// Problem is what a client reads, written down apart from the code that is tested.
type Problem struct {
	Type       string `json:"type"`
	Title      string `json:"title"`
	Status     int    `json:"status"`
	Detail     string `json:"detail"`
	Code       string `json:"code"`
	RetryAfter int    `json:"retry_after"`
	Retryable  bool   `json:"retryable"`
}

func (a Answer) Problem(t testing.TB) Problem {
	t.Helper()
	if a.Err != nil {
		t.Fatal(a.Err)
	}
	if got := a.Header.Get("Content-Type"); got != "application/problem+json" {
		t.Fatalf("status %d, Content-Type %q, want a problem: %s", a.Status, got, a.Body)
	}
	var p Problem
	if err := json.Unmarshal([]byte(a.Body), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

func (a Answer) Want(t testing.TB, status int) {
	t.Helper()
	if a.Err != nil || a.Status != status {
		t.Fatalf("status %d, error %v, want %d: %s", a.Status, a.Err, status, a.Body)
	}
}

// Post sends a request of that user for that cart, with a short body.
func Post(ctx context.Context, srv *httptest.Server, user, cart string) Answer {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL+"/?cart="+cart, strings.NewReader("pay"))
	if err != nil {
		return Answer{Err: err}
	}
	req.Header.Set("X-User", user)
	return Send(srv, req)
}

func Send(srv *httptest.Server, req *http.Request) Answer {
	resp, err := srv.Client().Do(req)
	if err != nil {
		return Answer{Err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return Answer{Status: resp.StatusCode, Header: resp.Header, Body: string(body), Err: err}
}

// PostAside is post in the background.
func PostAside(ctx context.Context, srv *httptest.Server, user, cart string) <-chan Answer {
	done := make(chan Answer, 1)
	go func() { done <- Post(ctx, srv, user, cart) }()
	return done
}

// stage is a handler whose runs the test watches and ends.
type stage struct {
	Entered chan *http.Request // one for each run
	Leave   chan struct{}      // closed to end the runs
	over    <-chan struct{}    // closed at the end of the test, so that a failed one can close its servers
}

func NewStage(t testing.TB) *stage {
	return &stage{Entered: make(chan *http.Request, 100), Leave: make(chan struct{}), over: t.Context().Done()}
}

func (s *stage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Entered <- r
	select {
	case <-s.Leave:
	case <-s.over:
	}
	_, _ = io.WriteString(w, "done")
}

// Receive waits for a signal.
func Receive[T any](t testing.TB, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(Patience):
		t.Fatalf("waited %v for %s", Patience, what)
		panic("unreachable")
	}
}

// WantProblem checks status and code of a refusal.
func (a Answer) WantProblem(t *testing.T, name string, status int, code string, retryable bool) {
	t.Helper()
	p := a.Problem(t)
	if a.Status != status || p.Code != code || p.Retryable != retryable {
		t.Errorf("%s: status %d, problem %+v, want %d %s, retryable %v", name, a.Status, p, status, code, retryable)
	}
}

// Attempt returns the number of the attempt whose run ctx is in, 0 if it is in none.
func Attempt(ctx context.Context) int {
	if attempt, ok := core.AttemptFrom(ctx); ok {
		return attempt.Number()
	}
	return 0
}
