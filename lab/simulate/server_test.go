//go:build holdfast_simulation

package simulate_test

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	wire "github.com/alicebob/miniredis/v2/server"
)

// errDown is the error of a connection to a server that does not run.
var errDown = errors.New("refused")

// server is one Redis server with a wall clock of its own. When it starts again it has no data, like one without
// persistence.
type server struct {
	number  int
	clock   clock
	refusal atomic.Pointer[string] // the error that each command gets; nil for none

	mu     sync.Mutex
	redis  *miniredis.Miniredis // nil while it does not run
	starts int
}

func newServer(number int) *server {
	s := &server{number: number, clock: clock{since: time.Now()}}
	s.start()
	return s
}

func (s *server) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.redis != nil {
		return
	}
	s.starts++
	s.redis = miniredis.NewMiniRedis()
	s.tickLocked()
	s.redis.ClockTTL(true)
	if conn, err := s.redis.Dial(); err == nil { // before the first connection there is nothing to have a hook
		_ = conn.Close()
	}
	s.redis.Server().SetPreHook(s.hook(s.starts, s.clock.now()))
}

// stop ends the server. It forgets all keys and scripts, and its connections end.
func (s *server) stop() {
	s.mu.Lock()
	redis := s.redis
	s.redis = nil
	s.mu.Unlock()
	if redis != nil {
		redis.Close()
	}
}

// dial returns a connection.
func (s *server) dial() (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.redis == nil {
		return nil, errDown
	}
	return s.redis.Dial()
}

// hook answers what miniredis does not know: INFO server, which a Redlock reads. It takes no mutex of the server, because a
// script calls it under miniredis's.
func (s *server) hook(run int, started time.Time) wire.Hook {
	return func(c *wire.Peer, command string, args ...string) bool {
		if refusal := s.refusal.Load(); refusal != nil {
			c.WriteError(*refusal)
			return true
		}
		if command != "INFO" || len(args) != 1 || args[0] != "server" {
			return false
		}
		up := s.clock.now().Unix() - started.Unix() // by the wall clock, and of two whole seconds, as in Redis
		c.WriteBulk(fmt.Sprintf("run_id:%020d%020d\r\nuptime_in_seconds:%d\r\n", s.number, run, up))
		return true
	}
}

// refuse lets the server refuse all commands with an error. An empty one ends that.
func (s *server) refuse(message string) {
	if message == "" {
		s.refusal.Store(nil)
		return
	}
	s.refusal.Store(&message)
}

// tick sets the time of miniredis, which stands still otherwise. It has to be called before each command. Expiries follow.
func (s *server) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tickLocked()
}

func (s *server) tickLocked() {
	if s.redis != nil {
		s.redis.SetTime(s.clock.now())
	}
}

// step sets the clock forward, or back if by is negative. In Redis an expiry is a point in time by the clock, so a step back
// keeps keys longer. miniredis has the time that is left instead. It shortens that by a step forward. After a step back it
// does not prolong it, so step does.
func (s *server) step(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tickLocked()
	if s.redis != nil && by < 0 {
		s.redis.DB(0) // shortens what is left by the time since the last command
		s.redis.FastForward(by)
	}
	s.clock.step(by)
	s.tickLocked()
}

// flush forgets all keys.
func (s *server) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.redis != nil {
		s.redis.FlushAll()
	}
}
