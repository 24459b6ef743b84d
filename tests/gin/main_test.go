package gin_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// patience bounds what must happen, however slow the machine.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	gin.SetMode(gin.TestMode)
	testkit.VerifyWaitingMain(m)
}

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

// router returns an engine with one route for POST at "/".
func router(handlers ...gin.HandlerFunc) *gin.Engine {
	engine := gin.New()
	engine.POST("/", handlers...)
	return engine
}

// recovery is gin's, without its log.
func recovery() gin.HandlerFunc { return gin.RecoveryWithWriter(io.Discard) }

// serve runs a server on a socket until the test ends. Each edit may change it.
func serve(t testing.TB, h http.Handler, edit ...func(*httptest.Server)) *httptest.Server {
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
	srv.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return srv
}

// cart is the key in most tests: two values, so that the key has to be joined.
func cart() httplock.KeyFunc {
	return httplock.Keys(httplock.ByHeader("X-User"), httplock.ByQuery("cart"))
}

type answer struct {
	status int
	header http.Header
	body   string
	err    error
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

func (a answer) problem(t testing.TB) problem {
	t.Helper()
	if a.err != nil {
		t.Fatal(a.err)
	}
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		t.Fatalf("status %d, Content-Type %q, want a problem: %s", a.status, got, a.body)
	}
	var p problem
	if err := json.Unmarshal([]byte(a.body), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

func (a answer) want(t testing.TB, status int) {
	t.Helper()
	if a.err != nil || a.status != status {
		t.Fatalf("status %d, error %v, want %d: %s", a.status, a.err, status, a.body)
	}
}

// post sends a request of that user for that cart, with a short body.
func post(ctx context.Context, srv *httptest.Server, user, cart string) answer {
	target := srv.URL + "/?cart=" + url.QueryEscape(cart)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, strings.NewReader("pay"))
	if err != nil {
		return answer{err: err}
	}
	req.Header.Set("X-User", user)
	return send(srv, req)
}

func send(srv *httptest.Server, req *http.Request) answer {
	resp, err := srv.Client().Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{status: resp.StatusCode, header: resp.Header, body: string(body), err: err}
}

// postAside is post in the background.
func postAside(ctx context.Context, srv *httptest.Server, user, cart string) <-chan answer {
	done := make(chan answer, 1)
	go func() { done <- post(ctx, srv, user, cart) }()
	return done
}

// stage is a handler whose runs the test watches and ends.
type stage struct {
	entered chan *http.Request // one for each run
	leave   chan struct{}      // closed to end the runs
	over    <-chan struct{}    // closed at the end of the test, so that a failed one can close its servers
}

func newStage(t testing.TB) *stage {
	return &stage{entered: make(chan *http.Request, 100), leave: make(chan struct{}), over: t.Context().Done()}
}

func (s *stage) handle(c *gin.Context) {
	s.entered <- c.Request
	select {
	case <-s.leave:
	case <-s.over:
	}
	c.String(http.StatusOK, "done")
}

// receive waits for a signal.
func receive[T any](t testing.TB, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("waited %v for %s", patience, what)
		panic("unreachable")
	}
}

// watch gets what the guards of a client tell its hooks, and has room enough not to block.
type watch struct {
	acquired chan string // key hashes
	refused  chan *httplock.Conflict
	failed   chan error
}

func newWatch() *watch {
	return &watch{
		acquired: make(chan string, 1000),
		refused:  make(chan *httplock.Conflict, 1000),
		failed:   make(chan error, 1000),
	}
}

// hooks makes a client send what it is told.
func (w *watch) hooks() core.Option {
	return core.WithHooks(core.Hooks{
		RunStart: func(ctx context.Context, start core.RunStart) context.Context {
			if start.Token != 0 {
				w.acquired <- start.KeyHash
			}
			return ctx
		},
		NotRun: func(_ context.Context, not core.NotRun) {
			var conflict *httplock.Conflict
			if errors.As(not.Err, &conflict) {
				w.refused <- conflict
			}
		},
		Incident: func(_ context.Context, incident core.Incident) { w.failed <- incident.Err },
	})
}

// awaitWaiter returns when somebody waits for the lock of that key.
func awaitWaiter(t testing.TB, locks *core.Client, hash string) {
	t.Helper()
	testkit.Eventually(t, patience, "a waiter", func() bool {
		info, err := locks.Inspect(t.Context(), "http:"+hash)
		return err == nil && info.Waiters > 0
	})
}

func awaitFree(t testing.TB, locks *core.Client, hash string) {
	t.Helper()
	testkit.Eventually(t, patience, "the release", func() bool {
		info, err := locks.Inspect(t.Context(), "http:"+hash)
		return err == nil && len(info.Holders) == 0
	})
}

// The options of guards in tests that are not about time: a busy machine is no reason to refuse a request.
var (
	patient   = core.WithWait(patience)
	unhurried = httplock.WithAskTimeout(patience)
)
