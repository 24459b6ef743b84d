package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/core"
)

// ErrFenced refuses a write because a holder with a greater fencing token has written: the lock, or the attempt, of this one is over.
var ErrFenced = errors.New("holdfast: sqllock: a later holder has written")

// Fence keeps the greatest fencing token that has written to a resource, and returns [ErrFenced] if the token of ctx is
// smaller: then roll back. Call it first in each transaction that writes to the resource. ctx is the context of a lease
// or of a run, see [core.TokenFrom]; without a token, as in a run without Redis, the error is [core.ErrNotHeld]. Later
// holders wait until the transaction has ended. The resource has at most 512 bytes.
func (s *Store) Fence(ctx context.Context, tx *sql.Tx, resource string) error {
	token, ok := core.TokenFrom(ctx)
	switch {
	case tx == nil:
		return invalid("Fence: the transaction is nil")
	case resource == "" || len(resource) > maxResource:
		return invalid("Fence: the resource has %d bytes: 1 to %d are allowed", len(resource), maxResource)
	case !ok:
		return fmt.Errorf("%w: sqllock: Fence: the context has no fencing token", core.ErrNotHeld)
	}
	scope, err := s.scope(ctx)
	if err != nil {
		return err
	}
	result, err := tx.ExecContext(ctx, s.fence, append([]any{[]byte(resource), token}, scope...)...)
	if err != nil {
		return fmt.Errorf("holdfast: sqllock: fence not set in %s: %w", s.table(s.fences), err)
	}
	n, err := result.RowsAffected()
	stale := n == 0
	if s.dialect == MySQL { // what it counts depends on the options of the connection; the statement gives this the greatest token
		n, err = result.LastInsertId()
		stale = n > token
	}
	if stale {
		return fmt.Errorf("%w: to %q, with a greater token than %d", ErrFenced, resource, token)
	}
	return err
}
