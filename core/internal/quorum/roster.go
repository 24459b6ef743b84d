package quorum

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// roster has the nodes of one Redlock by the run IDs of their servers, so that no server has two votes. Of two nodes of one
// server, the first to enter is verified. Nothing leaves a roster.
//
// What it does not find: a server that has restarted has another run ID, which its verified node does not enter. A second
// node of that server, which was refused before, can enter it.
type roster struct {
	mu      sync.Mutex
	byRunID map[string]*node // guarded by mu
}

// introductionTimeout bounds how long Introduce waits for the run IDs of the servers.
const introductionTimeout = 2 * time.Second

// identityError says that two nodes are the same server. The node that gets it has no vote.
type identityError struct{ error }

func (e *identityError) Unwrap() error { return e.error }

// Outcome is that nothing was executed: a node without a known identity is asked nothing else.
func (e *identityError) Outcome() transport.Outcome { return transport.Rejected }

// isIdentityError returns true if err is or wraps an identityError.
func isIdentityError(err error) bool {
	if err == nil { // by far the most frequent; errors.As costs an allocation
		return false
	}
	var same *identityError
	return errors.As(err, &same)
}

// enter records that a node has this run ID. It returns an identityError if another node has it. To enter a node twice
// changes nothing, so concurrent requests may verify it.
func (r *roster) enter(runID string, v *node) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if other := r.byRunID[runID]; other != nil && other != v {
		return &identityError{v.quorum.env.SameServer(min(other.number, v.number), max(other.number, v.number))}
	}
	r.byRunID[runID] = v
	return nil
}

// Introduce asks all servers for their run IDs, for at most introductionTimeout. It returns an error if two nodes are the
// same server. Unwrap of that error returns the error of Environment.SameServer.
//
// It returns nil even if servers do not answer. Such a server is asked again before its vote counts.
func (q *Strategy) Introduce() error {
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
