package proof_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

func TestMain(m *testing.M) { coretest.Main(m, nil) }

// store is a proof in memory.
type store struct {
	mu        sync.Mutex
	rows      map[string]*core.Committed
	away      error
	onlyAll   bool
	questions int
}

func newStore() *store { return &store{rows: make(map[string]*core.Committed)} }

func (s *store) Committed(ctx context.Context, key string) (*core.Committed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.questions++
	if s.away != nil {
		return nil, s.away
	}
	return s.rows[key], ctx.Err()
}

func (s *store) OnlyEffect() bool { return s.onlyAll }

func (s *store) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.questions
}

func (s *store) goAway(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = err
}

// commit makes the row of a key, as a run in another process does.
func (s *store) commit(key, value, fingerprint string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows[key] = &core.Committed{Value: []byte(value), Fingerprint: []byte(fingerprint), Attempt: 1, Token: 7, At: time.Now()}
}

// inTx commits in the run of a context, as a store with a database does.
func (s *store) inTx(ctx context.Context, value string) ([]byte, error) {
	p := seal.RunFrom(ctx).Proving()
	if p == nil || p.Store != s || !p.Begin() {
		return nil, errors.New("not in a run of this proof")
	}
	s.mu.Lock()
	found, away := s.rows[p.Key], s.away
	if found == nil && away == nil {
		s.rows[p.Key] = &core.Committed{
			Value: []byte(value), Fingerprint: bytes.Clone(p.Fingerprint), Attempt: p.Attempt, Token: p.Token, At: time.Now(),
		}
	}
	s.mu.Unlock()
	switch {
	case away != nil:
		return nil, away
	case found != nil:
		return found.Value, p.Complete(ctx, found)
	}
	p.Commit([]byte(value))
	return []byte(value), nil
}

// pays makes a run that commits a value, and returns it.
func (s *store) pays(value string) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) { return s.inTx(ctx, value) }
}

// never fails the test if it runs.
func never(t *testing.T) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) {
		t.Error("it ran")
		return nil, nil
	}
}
