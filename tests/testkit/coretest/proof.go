package coretest

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// Proof is a [core.Proof] in memory.
type Proof struct {
	// Only is what OnlyEffect returns.
	Only bool

	mu        sync.Mutex
	rows      map[string]*core.Committed
	away      error
	questions int
}

// NewProof returns a Proof without rows.
func NewProof() *Proof { return &Proof{rows: make(map[string]*core.Committed)} }

// Committed implements [core.Proof].
func (p *Proof) Committed(ctx context.Context, key string) (*core.Committed, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.questions++
	if p.away != nil {
		return nil, p.away
	}
	return p.rows[key], ctx.Err()
}

// Resolve implements [core.Proof].
func (p *Proof) Resolve(_ context.Context, key string, c core.Committed) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.away != nil:
		return p.away
	case p.rows[key] != nil:
		return core.ErrCompleted
	}
	p.rows[key] = &c
	return nil
}

// OnlyEffect implements [core.Proof].
func (p *Proof) OnlyEffect() bool { return p.Only }

// Asked returns how often Committed was called.
func (p *Proof) Asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.questions
}

// Rows returns how many keys have committed.
func (p *Proof) Rows() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.rows)
}

// GoAway makes the proof fail with err, until it is nil.
func (p *Proof) GoAway(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = err
}

// Commit makes the row of a key, as a run in another process does.
func (p *Proof) Commit(key, value, fingerprint string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rows[key] = &core.Committed{Value: []byte(value), Fingerprint: []byte(fingerprint), Attempt: 1, Token: 7, At: time.Now()}
}

// Delete deletes the row of a key.
func (p *Proof) Delete(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.rows, key)
}

// InTx commits in the run of a context, as a store with a database does.
func (p *Proof) InTx(ctx context.Context, value string) ([]byte, error) {
	run := seal.RunFrom(ctx).Proving()
	if run == nil || run.Store != p || !run.Begin() {
		return nil, errors.New("not in a run of this proof")
	}
	p.mu.Lock()
	found, away := p.rows[run.Key], p.away
	if found == nil && away == nil {
		p.rows[run.Key] = &core.Committed{
			Value: []byte(value), Fingerprint: bytes.Clone(run.Fingerprint), Attempt: run.Attempt, Token: run.Token, At: time.Now(),
		}
	}
	p.mu.Unlock()
	switch {
	case away != nil:
		return nil, away
	case found != nil:
		return found.Value, run.Complete(ctx, found)
	}
	run.Commit([]byte(value))
	return []byte(value), nil
}
