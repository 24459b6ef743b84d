package permits

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// Play is one fault. It is the same for all contestants.
type Play struct {
	Name       string
	persistent bool                                            // the server keeps its data in a restart
	run        func(context.Context, *stage) ([]Permit, error) // returns what is still held
}

// Plays returns all plays.
func Plays() []Play {
	return []Play{
		{Name: "holder of 2 crashes", run: crash},
		{Name: "reply to an acquire lost, permits free", run: func(ctx context.Context, s *stage) ([]Permit, error) {
			return lostAcquire(ctx, s, 0)
		}},
		{Name: "reply to an acquire of the last permit lost", run: func(ctx context.Context, s *stage) ([]Permit, error) {
			return lostAcquire(ctx, s, N-1)
		}},
		{Name: "reply to a release lost", run: lostRelease},
		{Name: "release arrives after the TTL", run: lateRelease},
		{Name: "release arrives when its caller holds again", run: repeatedRelease},
		{Name: "Redis restarts, with an append-only file", persistent: true, run: restart},
		{Name: "Redis restarts empty", run: restart},
	}
}

// crash cuts the victim off while it holds two permits. What it does afterwards cannot reach Redis, as after a SIGKILL.
func crash(ctx context.Context, s *stage) ([]Permit, error) {
	for range 2 {
		p, err := s.want(ctx, s.victim, s.caller())
		if err != nil {
			return nil, err
		}
		s.referee.gone(p)
	}
	s.relay.Drop(testkit.Both)
	return nil, nil
}

// lostAcquire closes the connection in place of the reply to an acquire, which Redis has carried out, while the others
// hold some permits.
func lostAcquire(ctx context.Context, s *stage, others int) ([]Permit, error) {
	held := s.take(ctx, others)
	s.relay.LoseReplies(s.name, 1, testkit.Closed)
	if p := s.ask(ctx, s.victim, s.caller()); p != nil {
		held = append(held, p)
	}
	return held, s.oneLost()
}

// oneLost returns an error if the fault did not happen.
func (s *stage) oneLost() error {
	if n := s.relay.LostReplies(); n != 1 {
		return fmt.Errorf("%d replies were lost, want 1", n)
	}
	return nil
}

// lostRelease does the same to a release, while the others hold all other permits.
func lostRelease(ctx context.Context, s *stage) ([]Permit, error) {
	p, err := s.want(ctx, s.victim, s.caller())
	if err != nil {
		return nil, err
	}
	held := s.take(ctx, N-1)
	s.relay.LoseReplies(s.name, 1, testkit.Closed)
	s.release(ctx, p)
	return held, s.oneLost()
}

// lateRelease keeps a release until the permit has expired, and the others hold all permits.
func lateRelease(ctx context.Context, s *stage) ([]Permit, error) {
	p, err := s.want(ctx, s.victim, s.caller())
	if err != nil {
		return nil, err
	}
	s.relay.Hold(testkit.ToServer)
	releasing, stop := context.WithTimeout(ctx, TTL/4)
	defer stop()
	s.release(releasing, p)
	if err := pause(ctx, TTL+expiryGrace); err != nil {
		return nil, err
	}
	held := s.take(ctx, N)
	if s.relay.Held(testkit.ToServer) == 0 {
		return nil, errors.New("no release was kept")
	}
	s.relay.Deliver()
	return held, pause(ctx, settleTime)
}

// repeatedRelease keeps the first copy of a release, until its caller has a permit again and the others hold the rest.
func repeatedRelease(ctx context.Context, s *stage) ([]Permit, error) {
	caller := s.caller()
	p, err := s.want(ctx, s.victim, caller)
	if err != nil {
		return nil, err
	}
	deliver := s.keepNext()
	defer deliver()
	s.release(ctx, p)
	again := s.ask(ctx, s.victim, caller)
	for end := time.Now().Add(TTL + expiryGrace); again == nil && time.Now().Before(end); {
		again = s.ask(ctx, s.victim, caller)
	}
	held := s.take(ctx, N-1)
	if !deliver() {
		return nil, errors.New("no release was kept")
	}
	if again != nil {
		held = append(held, again)
	}
	return held, pause(ctx, settleTime)
}

// keepNext keeps the next request of the victim that names the semaphore, and its connection, until deliver is called. That
// returns false if there was none.
func (s *stage) keepNext() (deliver func() bool) {
	var found atomic.Bool
	kept := make(chan struct{})
	s.relay.OnRequest(func(request []byte) {
		if bytes.Contains(request, []byte(s.name)) && found.CompareAndSwap(false, true) {
			<-kept
		}
	})
	return sync.OnceValue(func() bool {
		close(kept)
		return found.Load()
	})
}

// restart kills the server while all permits are held.
func restart(ctx context.Context, s *stage) ([]Permit, error) {
	held := s.take(ctx, N)
	s.server.Restart()
	return held, nil
}
