package testkit

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// binaryVar names the environment variable which selects the server program,
// so that one test suite can run against several versions of Redis and Valkey.
const binaryVar = "HOLDFAST_REDIS_SERVER"

// startTimeout is generous: a loaded machine is slow, and only a broken server
// ever takes this long.
const startTimeout = 10 * time.Second

// Server is a redis-server process private to a test. Start it with [Start].
type Server struct {
	t testing.TB
	*serverState
}

// serverState is what all tests see of a server that they share.
type serverState struct {
	binary  string
	dir     string
	cfg     config
	network string
	addr    string
	tlsAddr string // empty: no TLS

	mu   sync.Mutex // guards proc, and makes Kill and Restart one step each
	proc *process   // nil while the server is killed
}

// Start runs a redis-server until the test ends, and returns when it answers.
// By default it listens on a unix socket and keeps nothing on disk; DEBUG is
// allowed. The test fails at once if the server does not come up.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	binary := findBinary(t)
	// Not t.TempDir: its path holds the test's name and easily gets longer
	// than the about 100 bytes a unix socket's path may have.
	dir, err := os.MkdirTemp("", "hf")
	if err != nil {
		t.Fatalf("testkit: directory for the server: %v", err)
	}
	s := &Server{t, &serverState{binary: binary, dir: dir, cfg: newConfig(opts)}}
	t.Cleanup(s.remove)
	err = s.startFirst()
	if err != nil && s.cfg.authority != nil && s.lacksTLS() {
		t.Skipf("%s was built without TLS", binary)
	}
	if err != nil {
		t.Fatalf("testkit: %v", err)
	}
	return s
}

func findBinary(t testing.TB) string {
	t.Helper()
	name := os.Getenv(binaryVar)
	if name == "" {
		name = "redis-server"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("testkit: no Redis server: %v\n"+
			"Install one (apt-get install redis-server, brew install redis)\n"+
			"or set %s to the path of a redis-server or valkey-server.", err, binaryVar)
	}
	return path
}

// startFirst chooses the address and starts the server there. Where a free TCP
// port cannot be kept, another process can take it before the server binds it;
// then another one is tried.
func (s *Server) startFirst() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cfg.authority != nil {
		if err := s.setUpTLS(); err != nil {
			return err
		}
	}
	if !s.cfg.tcp {
		s.network, s.addr = "unix", filepath.Join(s.dir, "s")
		return s.launch()
	}
	s.network = "tcp"
	var err error
	for range 10 {
		port, release, failure := takePort(s.cfg.bus)
		if failure != nil {
			return failure
		}
		s.t.Cleanup(release)
		s.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if err = s.launch(); !errors.Is(err, errAddrInUse) {
			break
		}
	}
	return err
}

// remove ends the server for good. SIGKILL ends a paused process as well.
func (s *Server) remove() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop()
	if err := os.RemoveAll(s.dir); err != nil {
		s.t.Errorf("testkit: %v", err)
	}
}

// For returns the same server for another test, whose clients and relays end with it.
func (s *Server) For(t testing.TB) *Server { return &Server{t, s.serverState} }

// Network returns the network of the server's address, "unix" or "tcp".
func (s *Server) Network() string { return s.network }

// Addr returns the path of the server's unix socket, or its host:port.
func (s *Server) Addr() string { return s.addr }

// Port returns the server's TCP port, or 0 if it listens on a unix socket.
func (s *Server) Port() int {
	_, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(port)
	return n
}

// Options returns new go-redis options which lead to the server. All else has
// the defaults of go-redis, which are what most users have.
func (s *Server) Options() *redis.Options {
	return &redis.Options{Network: s.network, Addr: s.addr}
}

// Client returns a new client of the server, which is closed when the test
// ends. Each edit may change its options.
func (s *Server) Client(edit ...func(*redis.Options)) *redis.Client {
	return newClient(s.t, s.Options(), edit, s.thaw)
}

// Relay returns a new relay in front of the server, closed when the test ends.
func (s *Server) Relay() *Relay {
	s.t.Helper()
	r := NewRelay(s.t, s.network, s.addr)
	r.thaw = s.thaw
	return r
}

// newClient connects until the test ends. Before it closes the client it calls thaw, because a server may be frozen at the end
// of its test. Then it waits for commands that no caller waits for any more: their goroutines must not outlive the test.
func newClient(
	t testing.TB, opts *redis.Options, edit []func(*redis.Options), thaw func(),
) *redis.Client {
	for _, fn := range edit {
		fn(opts)
	}
	c := redis.NewClient(opts)
	// A test may close its client itself, so the error does not matter.
	t.Cleanup(func() {
		thaw()
		for end := time.Now().Add(drained); busy(c) && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		_ = c.Close()
	})
	return c
}

// drained is how long that may take.
const drained = 5 * time.Second

func busy(c *redis.Client) bool {
	stats := c.PoolStats()
	return stats.TotalConns > stats.IdleConns
}
