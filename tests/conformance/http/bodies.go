package httpconformance

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

var bodyTests = tests{
	"TruncatedBodyIsTold":      testTruncatedBody,
	"StalledBodyIsTold":        testStalledBody,
	"BodiesTakeBoundedMemory":  testBodyMemory,
	"HalfABodyIsNotCompared":   testHalfBody,
	"MemoryIsOfRequestsAlone":  testBodyMemoryIsGivenBack,
	"NoBodyRunsUnread":         testNoBodyRunsUnread,
	"ChunkedBodiesAreCutShort": testTruncatedChunks,
	"UnsentBodyHoldsNothing":   testUnsentBody,
	"BodyMemoryIsShared":       testBodyMemoryIsShared,
}

// guards are one of each kind.
func (s *suite) guards(t testing.TB, opts ...httplock.Option) map[string]Guard {
	return map[string]Guard{
		"exclusive": s.exclusive(t, opts...), "once": s.once(t, opts...), "idempotent": s.idempotent(t, opts...),
	}
}

// half sends half of a body over a connection of its own, ends the sending side, and returns the answer.
func (x *site) half(t testing.TB, fields, half string) answer {
	t.Helper()
	conn, err := net.Dial("tcp", x.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST /orders/1 HTTP/1.1\r\nHost: test\r\nX-User: half\r\nIdempotency-Key: k\r\n%s\r\n\r\n%s", fields, half)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{status: resp.StatusCode, header: resp.Header, body: string(body), err: err}
}

// testTruncatedBody: a client that is there is told what is wrong with its request.
func testTruncatedBody(t *testing.T, s *suite) { s.truncated(t, "Content-Length: 10", "half") }

func testTruncatedChunks(t *testing.T, s *suite) {
	s.truncated(t, "Transfer-Encoding: chunked", "4\r\nhalf\r\n")
}

func (s *suite) truncated(t *testing.T, fields, half string) {
	if s.http2 {
		t.Skip("over HTTP/2 a body that is cut short is an error of the protocol")
	}
	runs := &counter{}
	for name, guard := range s.guards(t) {
		site := s.mount(t, runs, guard)
		p := site.half(t, fields, half).refused(t, http.StatusBadRequest, httplock.CodeBodyUnreadable)
		if !p.Retryable {
			t.Errorf("%s: the whole request would be welcome: %+v", name, p)
		}
	}
	runs.ran(t, 0)
}

// testStalledBody: so is one that sends too slowly.
func testStalledBody(t *testing.T, s *suite) {
	runs := &counter{}
	for name, guard := range s.guards(t) {
		told := false
		for limit := 100 * time.Millisecond; !told && limit < patience; limit *= 2 { // the header has to arrive in time
			inner := s.Handler(Route{Path: "/orders/{id}", Guards: []Guard{guard}, Handler: runs})
			site := s.serve(t, inner, func(srv *httptest.Server) { srv.Config.ReadTimeout = limit })
			body, sender := io.Pipe()
			ctx, cancel := context.WithCancel(t.Context())
			done := site.aside(ctx, request{user: "stalled-" + name, key: "k", source: body})
			_, _ = io.WriteString(sender, "half")
			// If the server closes the connection before it has read the header, Go's client waits for the rest of the body.
			giveUp := time.AfterFunc(limit+patience/4, func() { _ = sender.Close() })
			a := receive(t, done, "the answer")
			giveUp.Stop()
			_ = sender.Close()
			cancel()
			if a.err == nil {
				a.refused(t, http.StatusRequestTimeout, httplock.CodeBodyTimeout)
				told = true
			}
		}
		if !told {
			t.Errorf("%s: no answer", name)
		}
	}
	runs.ran(t, 0)
}

// testHalfBody: bodies are compared whole or not at all.
func testHalfBody(t *testing.T, s *suite) {
	runs := &counter{}
	inner := s.Handler(Route{Path: "/orders/{id}", Guards: []Guard{s.idempotent(t)}, Handler: runs})
	site := s.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 10)
		inner.ServeHTTP(w, r)
	}))
	r := request{user: "half-body", key: "k", body: strings.Repeat("b", 20)}
	site.do(r).refused(t, http.StatusRequestEntityTooLarge, httplock.CodePayloadTooLarge)
	r.body = "whole"
	site.do(r).fresh(t, http.StatusCreated, "1")
}

// stall sends part of a body of that user, and returns what ends the request.
func (x *site) stall(t testing.TB, user string, bytes int) (leave func()) {
	t.Helper()
	body, sender := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	done := x.aside(ctx, request{user: user, key: "k", source: body})
	_, _ = io.WriteString(sender, strings.Repeat("b", bytes))
	return func() {
		cancel()
		_ = sender.CloseWithError(context.Canceled)
		<-done
	}
}

// testBodyMemory: stalled uploads do not fill the memory of the process.
func testBodyMemory(t *testing.T, s *suite) {
	reading, site := s.readable(t, &counter{}, s.idempotent(t, httplock.WithBodyMemory(1100), httplock.WithBodyLimit(400)))
	leave := site.stall(t, "memory", 300)
	receive(t, reading, "the stalled body to take its memory")
	n := 0
	try := func() answer {
		n++
		a := site.do(request{user: "memory", key: fmt.Sprint("other-", n), body: "order"})
		for len(reading) > 0 {
			<-reading
		}
		return a
	}
	p := try().refused(t, http.StatusServiceUnavailable, httplock.CodeTooManyBodies)
	if !p.Retryable || p.RetryAfter < 1 {
		t.Errorf("problem %+v, want that the client comes back", p)
	}
	leave()
	testkit.Eventually(t, patience, "the memory to be given back", func() bool {
		return try().status == http.StatusCreated
	})
}

// testBodyMemoryIsGivenBack: requests one after the other do not add up.
func testBodyMemoryIsGivenBack(t *testing.T, s *suite) {
	site := s.mount(t, &counter{}, s.idempotent(t, httplock.WithBodyMemory(4096), httplock.WithBodyLimit(2040)))
	for i := range 20 {
		site.do(request{user: "given-back", key: fmt.Sprint("k", i), body: strings.Repeat("b", 2000)}).
			want(t, http.StatusCreated)
	}
}

// testNoBodyRunsUnread: a guard without memory for a body refuses the request, whether or not it compares bodies. A run
// whose body has not arrived would hold its key for as long as the client likes.
func testNoBodyRunsUnread(t *testing.T, s *suite) {
	runs := &counter{}
	tight := []httplock.Option{httplock.WithBodyMemory(2000), httplock.WithBodyLimit(900)}
	for name, guard := range s.guards(t, tight...) {
		reading, site := s.readable(t, runs, guard)
		leave := site.stall(t, name+"-slow", 850)
		receive(t, reading, "the stalled body to take its memory")
		site.do(request{user: name + "-slow", key: "other", body: strings.Repeat("b", 850)}).
			refused(t, http.StatusServiceUnavailable, httplock.CodeTooManyBodies)
		leave()
	}
	runs.ran(t, 0)
}

// unsent is a body that signals before its first read.
type unsent struct {
	io.ReadCloser
	asked chan<- struct{}
	told  bool
}

func (u *unsent) Read(p []byte) (int, error) {
	if !u.told {
		u.told = true
		u.asked <- struct{}{}
	}
	return u.ReadCloser.Read(p)
}

// testUnsentBody: a client that announces a body and sends none holds no key, whatever it announces. Another request of
// the key runs meanwhile.
func testUnsentBody(t *testing.T, s *suite) {
	if s.http2 {
		t.Skip("a request over a connection of its own, by hand, is one of HTTP/1.1")
	}
	for name, guard := range map[string]Guard{
		"exclusive": s.exclusive(t, core.WithWait(0)), "once": s.once(t, core.WithWait(0)),
	} {
		for what, fields := range map[string]string{
			"small": "Content-Length: 100", "large": "Content-Length: 10000000", "chunked": "Transfer-Encoding: chunked",
			"large, expects 100": "Content-Length: 10000000\r\nExpect: 100-continue",
		} {
			asked := make(chan struct{}, 2)
			inner := s.Handler(Route{Path: "/orders/{id}", Guards: []Guard{guard}, Handler: http.HandlerFunc(
				func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) },
			)})
			site := s.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.Body = &unsent{ReadCloser: r.Body, asked: asked}
				inner.ServeHTTP(w, r)
			}))
			conn, err := net.Dial("tcp", site.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			user := name + "-" + strings.ReplaceAll(what, " ", "-")
			if _, err := fmt.Fprintf(conn, "POST /orders/1 HTTP/1.1\r\nHost: test\r\nX-User: %s\r\n%s\r\n\r\n", user, fields); err != nil {
				t.Fatal(err)
			}
			receive(t, asked, "the server to ask for the body")
			if a := site.do(request{user: user, body: "here"}); a.err != nil || a.status != http.StatusOK || a.body != "here" {
				t.Errorf("%s, %s: status %d, error %v: %s", name, what, a.status, a.err, a.body)
			}
			_ = conn.Close()
		}
	}
}

// testBodyMemoryIsShared: a user who sends as many bodies as the guard takes, and ends none of them, leaves room for
// others.
func testBodyMemoryIsShared(t *testing.T, s *suite) {
	refused := make(chan struct{}, 1)
	locks := newLocks(t, s.redis.Client(), core.WithHooks(core.Hooks{
		NotRun: func(_ context.Context, not core.NotRun) {
			if not.Reason == httplock.CodeTooManyBodies {
				select {
				case refused <- struct{}{}:
				default: // more may be refused before the test looks: a hook that waits keeps its request open for good
				}
			}
		},
	}))
	guard := must(t)(s.Idempotent(locks, ByUser, unhurried(nil, httplock.WithBodyMemory(8000), httplock.WithBodyLimit(1000))...))
	reading, site := s.readable(t, &counter{}, guard)
	full := false
	for i := 0; !full; i++ {
		body, sender := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		done := site.aside(ctx, request{user: "greedy", key: fmt.Sprint("k", i), source: body})
		defer func() {
			cancel()
			_ = sender.CloseWithError(context.Canceled)
			<-done
		}()
		go func() { _, _ = io.WriteString(sender, strings.Repeat("b", 800)) }()
		select {
		case <-refused: // the client learns it when it has ended its body
			full = true
		case <-reading:
		case <-time.After(patience):
			t.Fatal("neither read nor refused")
		}
	}
	site.do(request{user: "modest", key: "k", body: strings.Repeat("b", 800)}).want(t, http.StatusCreated)
}
