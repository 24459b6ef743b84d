package permits

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

const (
	// N is how many permits the semaphores have.
	N = 5
	// TTL is the TTL of permits in plays.
	TTL = 2 * time.Second
	// expiryGrace is how much later than its TTL a permit must be free. It includes a second because x/rate counts in whole seconds.
	expiryGrace = 1500 * time.Millisecond
	// callTimeout bounds calls of the victim. It is long because a client of Redisson repeats a command after three seconds.
	callTimeout = 15 * time.Second
	// settleTime is how long a request that was kept gets to be carried out.
	settleTime = 200 * time.Millisecond
)

// stage is what a play works with: a server, and two processes of a contestant.
type stage struct {
	server         *testkit.Server
	relay          *testkit.Relay // before the victim
	name           string
	victim, others Process
	referee        *referee
	callers        int // numbers that were given out
}

func newStage(t testing.TB, c Contestant, p Play) (*stage, error) {
	options := []testkit.Option{testkit.TCP()}
	if p.persistent {
		options = append(options, testkit.AOF())
	}
	s := &stage{server: testkit.Start(t, options...), name: "permits", referee: newReferee()}
	s.relay = s.server.Relay()
	var err error
	if s.victim, err = c.Open(Config{Addr: s.relay.Addr(), Name: s.name, N: N, TTL: TTL}); err != nil {
		return nil, fmt.Errorf("victim: %w", err)
	}
	if s.others, err = c.Open(Config{Addr: s.server.Addr(), Name: s.name, N: N, TTL: TTL}); err != nil {
		return nil, errors.Join(fmt.Errorf("others: %w", err), s.victim.Close())
	}
	return s, nil
}

// close gives the victim connections that fail at once: it may have been cut off, and would wait for replies.
func (s *stage) close() {
	s.relay.Refuse(true)
	s.relay.Reset()
	_ = s.victim.Close() // a process that was cut off cannot end cleanly
	_ = s.others.Close()
}

// caller returns the number of a new caller.
func (s *stage) caller() int { s.callers++; return s.callers - 1 }

// ask lets a caller ask once. It returns nil if the caller got no permit: it was refused, or the call failed.
func (s *stage) ask(ctx context.Context, p Process, caller int) Permit {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	permit, err := p.Try(ctx, caller)
	if err != nil || permit == nil {
		return nil
	}
	s.referee.granted(permit)
	return permit
}

// want is ask for permits that must be had.
func (s *stage) want(ctx context.Context, p Process, caller int) (Permit, error) {
	if permit := s.ask(ctx, p, caller); permit != nil {
		return permit, nil
	}
	return nil, fmt.Errorf("caller %d got no permit of those that are free", caller)
}

// take lets the others take so many permits, or as many as they can have.
func (s *stage) take(ctx context.Context, most int) (taken []Permit) {
	for range most {
		permit := s.ask(ctx, s.others, s.caller())
		if permit == nil {
			break
		}
		taken = append(taken, permit)
	}
	return taken
}

// release lets the holder go. Errors do not matter here, because the permits that can be had tell what came of it.
func (s *stage) release(ctx context.Context, permits ...Permit) {
	for _, p := range permits {
		s.referee.gone(p)
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		_ = p.Release(ctx)
		cancel()
	}
}
