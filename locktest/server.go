package locktest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/holdfast-go/holdfast/core"
	"github.com/redis/go-redis/v9"
)

// TB is what this package needs of a [testing.TB].
type TB interface {
	Helper()
	Cleanup(cleanup func())
	Fatalf(format string, args ...any)
}

// New returns a client on a server of its own. Both end with the test.
func New(t TB, opts ...core.Option) *core.Client {
	t.Helper()
	return Start(t).NewClient(opts...)
}

// Start returns a server that ends with the test, after its clients.
func Start(t TB) *Server {
	t.Helper()
	s := NewServer()
	s.t = t
	if o, ok := t.(interface{ Output() io.Writer }); ok { // since Go 1.25
		s.logger = slog.New(slog.NewTextHandler(o.Output(), nil))
	}
	t.Cleanup(s.Close)
	return s
}

// A Server is an embedded Redis that a test can break. Its methods may be called from several goroutines at once.
type Server struct {
	mini   *miniredis.Miniredis
	runID  string
	began  time.Time
	t      TB           // nil without a test
	logger *slog.Logger // of clients; nil is none

	mu      sync.Mutex
	ahead   time.Duration // of the clock of package time
	stopped bool
	resumed chan struct{} // closed by Resume; nil if the server is not paused
	closed  bool
	links   []*link
	clients []*client
	shared  *redis.Client // of Redis
	local   *listener     // of Addr
}

// A client is a lock client with a connection pool of its own, as a process has it.
type client struct {
	locks *core.Client
	rdb   *redis.Client
	link  *link
}

// NewServer returns a server for programs without a test, such as an Example function. The caller must close the server.
func NewServer() *Server {
	s := &Server{mini: miniredis.NewMiniRedis(), runID: newRunID(), began: time.Now()}
	first, err := s.mini.Dial() // without a listener
	if err != nil {
		panic(fmt.Sprintf("locktest: embedded Redis: %v", err)) // impossible without a listener
	}
	_ = first.Close()
	s.mini.Server().SetPreHook(s.answerInfo)
	s.setTime()
	s.mini.ClockTTL(true)
	return s
}

// NewClient returns a client with connections of its own, which stands for another process. The server closes it. The
// client logs to the output of the test unless opts say otherwise, and nowhere without a test.
func (s *Server) NewClient(opts ...core.Option) *core.Client {
	c := &client{link: s.newLink()}
	c.rdb = redis.NewClient(options(c.link))
	locks, err := core.New(c.rdb, append([]core.Option{core.WithLogger(s.logger)}, opts...)...)
	if err != nil {
		_ = c.rdb.Close()
		s.fatalf("locktest: %v", err)
	}
	c.locks = locks
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients = append(s.clients, c)
	return locks
}

// Redis returns a go-redis client of the server: for [core.New], [core.NewRedlock] and the rest of your code. All calls
// return the same client, which the server closes. For a client with a pool of its own, use its Options.
func (s *Server) Redis() *redis.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shared == nil {
		s.shared = redis.NewClient(options(s.newLinkLocked()))
	}
	return s.shared
}

// options returns the options of a go-redis client on a link.
func options(l *link) *redis.Options {
	return &redis.Options{
		Addr:   "127.0.0.1:6379", // shown in errors; a host name would be looked up
		Dialer: func(context.Context, string, string) (net.Conn, error) { return l.dial() },
		// No retries: go-redis sleeps between them under a mutex, so time would stand still in a bubble.
		DialerRetries: 1, MaxRetries: -1,
		// After as many failed dials, go-redis dials only once a second, so that Start would not be noticed at once.
		PoolSize: 1000,
	}
}

func (s *Server) newLink() *link {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newLinkLocked()
}

func (s *Server) newLinkLocked() *link {
	l := &link{server: s, conns: make(map[*conn]struct{})}
	s.links = append(s.links, l)
	return l
}

// Close closes all clients, then the server. Closing again does nothing.
func (s *Server) Close() {
	s.Resume()
	s.Start()
	s.mu.Lock()
	clients, shared, local := s.clients, s.shared, s.local
	s.clients, s.local = nil, nil
	for _, c := range clients {
		c.link.cut = false // so that the client need not wait for a server that it cannot reach
	}
	s.mu.Unlock()

	for _, c := range slices.Backward(clients) {
		_, _ = c.locks.Close(), c.rdb.Close()
	}
	if shared != nil {
		_ = shared.Close()
	}
	if local != nil {
		local.close()
	}
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.mini.Close()
}

// fatalf ends the test, or panics without one.
func (s *Server) fatalf(format string, args ...any) {
	if s.t == nil {
		panic(fmt.Sprintf(format, args...))
	}
	s.t.Helper()
	s.t.Fatalf(format, args...)
	panic(errors.New("locktest: Fatalf of the test has returned"))
}
