package redlock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// roster knows the servers by their run ids.
type roster struct {
	mu      sync.Mutex
	byRunID map[string]*node
}

// introductionTimeout bounds how long introduce waits for the run ids of the servers.
const introductionTimeout = 2 * time.Second

// identityError says that two nodes are the same server. Such a node never has a vote.
type identityError struct{ error }

func (e *identityError) Unwrap() error { return e.error }

// Outcome is that nothing was executed: a node without a known identity is asked nothing else.
func (e *identityError) Outcome() transport.Outcome { return transport.Rejected }

func isIdentityError(err error) bool {
	var same *identityError
	return errors.As(err, &same)
}

// enter adds a server to the roster.
func (r *roster) enter(runID string, v *node) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if other := r.byRunID[runID]; other != nil && other != v {
		return &identityError{v.quorum.env.SameServer(min(other.number, v.number), max(other.number, v.number))}
	}
	r.byRunID[runID] = v
	return nil
}

// Introduce asks all servers for their run ids, for at most introductionTimeout. It returns the error of two nodes that are
// the same server; servers that do not answer are asked again before their votes count.
func (q *Quorum) Introduce() error {
	ctx, cancel := context.WithTimeout(context.Background(), introductionTimeout)
	defer cancel()
	errs := make([]error, len(q.nodes))
	var all sync.WaitGroup
	for i, v := range q.nodes {
		all.Go(func() { errs[i] = v.verifyIdentity(ctx) })
	}
	all.Wait()
	for _, err := range errs {
		if isIdentityError(err) {
			return err
		}
	}
	return nil
}
