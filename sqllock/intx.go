package sqllock

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
)

const (
	runSize = 16
	// retryPause lies between two transactions of InTx that have failed for a reason that passes.
	retryPause = 10 * time.Millisecond
	// commitTimeout bounds how long InTx waits for the reply of a commit, also if ctx has no deadline.
	commitTimeout = 10 * time.Second
	// decideTimeout bounds how long InTx finds out what has become of a commit without a reply.
	decideTimeout = 10 * time.Second
)

// ErrSecondTx refuses a second transaction in one run: a key has one proof. It is also the error of InTx within InTx.
var ErrSecondTx = errors.New("holdfast: sqllock: the run has a transaction with a proof already")

var (
	errEnded = errors.New("holdfast: sqllock: the transaction was over before its commit: the function has ended it itself, or ignored an " +
		"error that did")
	// errUnfinished is the error of a row that InTx has not written to the end.
	errUnfinished = errors.New("holdfast: sqllock: the function of an earlier run has ended its transaction itself, so nobody knows what has " +
		"become of it: find out, and remove the row by Store.Delete")
	errFree = errors.New("the row could be inserted")
)

// proving is a run that commits a proof.
type proving struct {
	*Store
	*seal.Proving
	id    []byte
	run   []byte // distinguishes its row from the row of another run of the key
	scope []any
}

// proving returns the run of a context.
func (s *Store) proving(ctx context.Context) (*proving, error) {
	p := seal.ProvingFrom(ctx)
	switch {
	case p == nil:
		return nil, fmt.Errorf("%w with a proof: pass core.WithProof(store) to the Once or the guard, and the context of its run",
			core.ErrNotGuarded)
	case p.Store != s:
		return nil, invalid("the proof of the run is not this store: pass it to core.WithProof")
	}
	scope, err := s.scope(ctx)
	if err != nil {
		return nil, err
	}
	if !p.Begin() {
		return nil, ErrSecondTx
	}
	s.logger.Store(p.Logger)
	for r := s.retention.Load(); int64(p.Retention) > r && !s.retention.CompareAndSwap(r, int64(p.Retention)); {
		r = s.retention.Load()
	}
	return s.run(p, scope), nil
}

func (s *Store) run(p *seal.Proving, scope []any) *proving {
	run := make([]byte, runSize)
	_, _ = rand.Read(run) // never fails
	return &proving{s, p, idOf(scope, p.Key), run, scope}
}

// InTx runs fn in a transaction that also commits the proof, and returns its value. ctx is the context of a run of a [core.Once]
// with [core.WithProof] and this store, or descends from it. fn gets a context that ends with the lease.
//
// If an earlier run of the key has committed, fn is not called: InTx returns the value of that run and a [core.CompletedError],
// after the record in Redis was completed. Return the error: the caller of the Once, or the client of the guard, gets the value.
// A transaction of another attempt that is open makes InTx wait for its end, until ctx ends.
//
// If fn returns an error or panics, the transaction is rolled back. So it is if the value is larger than the record may be
// ([core.ErrValueTooLarge]). Until fn has begun, conflicts with other transactions (serialization failures, deadlocks, lock
// timeouts) are tried again; afterwards they are errors of InTx, and InTx may be called again in the same run. If the reply of the
// commit was lost, or has not come after 10 s, InTx asks the database what has become of it. If that cannot be found out, the error is
// [core.ErrUndecided], and the next attempt asks. The row of another request, by its fingerprint, is
// [core.ErrFingerprintMismatch]. After a commit, further calls are [ErrSecondTx].
//
// fn must not end the transaction itself, and in MySQL not run statements that commit implicitly, such as DDL. If it has committed, InTx
// returns an error, and the key is refused with [core.ErrUndecided] until an operator has found out and calls [Store.Delete]. Return the
// error of each statement: after some, such as a deadlock in MySQL, there is no transaction any more. InTx notices that, too, and in
// PostgreSQL and SQLite, where what fn did after it may have committed, it holds the key for an operator.
//
// The transaction of a process that is stopped keeps its row locked until the database ends it: set
// idle_in_transaction_session_timeout in PostgreSQL.
func (s *Store) InTx(ctx context.Context, fn func(ctx context.Context, tx *sql.Tx) ([]byte, error)) ([]byte, error) {
	if fn == nil {
		return nil, invalid("InTx: the function is nil")
	}
	p, err := s.proving(ctx)
	if err != nil {
		return nil, err
	}
	return p.inTx(ctx, fn)
}

func (p *proving) inTx(ctx context.Context, fn func(ctx context.Context, tx *sql.Tx) ([]byte, error)) ([]byte, error) {
	var o outcome
	defer func() {
		if o < committed {
			p.Rollback()
		}
	}()
	for {
		var value []byte
		var err error
		switch value, o, err = p.transact(ctx, fn); o {
		case committed:
			p.Commit(value)
			return value, nil
		case uncertain:
			return p.decide(ctx, value, err)
		case rolledBack:
			return nil, err
		}
		found, _, failure := p.find(ctx, p.db.QueryRowContext, p.read, p.id, p.scope)
		switch {
		case found != nil:
			o = committed
			return p.found(ctx, found)
		case ctx.Err() != nil:
			return nil, errors.Join(context.Cause(ctx), err)
		case failure != nil && !p.dialect.passes(failure):
			return nil, failure
		case err != nil && !p.dialect.passes(err):
			return nil, err
		}
		pause(ctx)
	}
}

// outcome is what has become of a transaction.
type outcome int

const (
	refused    outcome = iota // the row was not inserted, and nothing has happened
	rolledBack                // fn has run, and has had no effect
	committed
	uncertain // the commit has no reply
)

// transact runs one transaction. The error of a refused one is nil if there is a row.
func (p *proving) transact(ctx context.Context, fn func(context.Context, *sql.Tx) ([]byte, error)) (value []byte, o outcome, err error) {
	conn, err := p.db.Conn(ctx)
	if err != nil {
		return nil, refused, fmt.Errorf("holdfast: sqllock: %w", err)
	}
	defer conn.Close()
	if p.dialect == MySQL { // it ends a transaction at a deadlock: what fn does after that must not commit statement by statement
		if _, err := conn.ExecContext(ctx, "SET autocommit = 0"); err != nil {
			return nil, refused, fmt.Errorf("holdfast: sqllock: %w", err)
		}
		defer func() { reset(ctx, conn, o == committed) }()
	}
	whole, cancel := context.WithCancel(ctx) // of the transaction; it ends before ctx if the database does not answer
	defer cancel()
	tx, err := conn.BeginTx(whole, &p.tx)
	if err != nil {
		return nil, refused, fmt.Errorf("holdfast: sqllock: transaction not begun: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // it has no effect after a commit, and otherwise the connection is closed
	inserted, err := p.insertRow(ctx, tx, nil)
	if inserted && p.dialect != Postgres { // see store
		_, err = tx.ExecContext(ctx, "SAVEPOINT holdfast")
	}
	if err != nil || !inserted {
		return nil, refused, err
	}
	value, err = fn(ctx, tx)
	if err == nil && len(value) > p.MaxValue {
		err = fmt.Errorf("%w: sqllock: %d bytes, at most %d are allowed: the transaction is rolled back",
			core.ErrValueTooLarge, len(value), p.MaxValue)
	}
	if ctx.Err() != nil {
		return nil, rolledBack, cmp.Or(err, context.Cause(ctx))
	}
	stop := time.AfterFunc(commitTimeout, cancel)
	defer stop.Stop()
	switch ended, failure := p.store(whole, tx, value); { // also after an error, to find out whether fn has ended the transaction
	case ended:
		return value, uncertain, errors.Join(err, errEnded, failure)
	case err != nil:
		return nil, rolledBack, err
	case failure != nil:
		return nil, rolledBack, fmt.Errorf("holdfast: sqllock: value not stored with the proof: %w", failure)
	}
	if p.dialect == MySQL { // Commit of its driver waits for ever
		_, err = tx.ExecContext(whole, "COMMIT")
	} else {
		err = tx.Commit()
	}
	if err != nil {
		_ = tx.Rollback()                                          // which Raw would wait for
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // the transaction may still be open on it
		return value, uncertain, fmt.Errorf("holdfast: sqllock: not committed: %w", err)
	}
	return value, committed, nil
}

// reset makes a connection of MySQL commit each statement again. It rolls back first, as database/sql may be about to do: the change
// itself would commit.
func reset(ctx context.Context, conn *sql.Conn, committed bool) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), decideTimeout)
	defer cancel()
	var err error
	if !committed {
		_, err = conn.ExecContext(bounded, "ROLLBACK")
	}
	if err == nil {
		_, err = conn.ExecContext(bounded, "SET autocommit = 1")
	}
	if err != nil {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	}
}

// store stores the value in the row. The transaction has ended if fn has committed or rolled it back, also if it has begun another one:
// then its savepoint is gone. In PostgreSQL a setting of the transaction tells, because a savepoint would slow down what waits for the
// rows that fn has written.
func (p *proving) store(ctx context.Context, tx *sql.Tx, value []byte) (ended bool, err error) {
	if p.dialect != Postgres {
		_, err = tx.ExecContext(ctx, "RELEASE SAVEPOINT holdfast")
	}
	n := int64(1)
	if err == nil {
		stored := append([]byte{}, value...) // an empty value is not NULL
		var result sql.Result
		if result, err = tx.ExecContext(ctx, p.write, append([]any{stored, p.id, p.run}, p.scope...)...); err == nil {
			n, err = result.RowsAffected()
		}
	}
	return n == 0 || p.dialect.isEnded(err) || errors.Is(err, sql.ErrTxDone) && ctx.Err() == nil, err
}

// insertRow inserts the row of the run, and returns false if there is one of another run. It waits for another transaction that
// has inserted one. Without a value the row is not finished.
func (p *proving) insertRow(ctx context.Context, tx *sql.Tx, value []byte) (inserted bool, err error) {
	result, err := tx.ExecContext(ctx, p.insert, append([]any{
		p.id, []byte(p.Key), p.run, p.Attempt, p.Token, p.Fingerprint, value, time.Now().UnixMilli(),
	}, p.scope...)...)
	switch {
	case p.dialect.isDuplicate(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("holdfast: sqllock: proof not inserted into %s in %v: %w", p.table(p.proofs), p.dialect, err)
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// decide finds out what has become of a commit without a reply. It inserts the row once more: if that succeeds, the
// commit has failed, because the database lets no other transaction insert the row while the first one is open.
func (p *proving) decide(ctx context.Context, value []byte, lost error) ([]byte, error) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), decideTimeout)
	defer cancel()
	for {
		_, _, err := p.transact(bounded, func(context.Context, *sql.Tx) ([]byte, error) { return nil, errFree })
		var found *core.Committed
		var run []byte
		if err == nil {
			found, run, err = p.find(bounded, p.db.QueryRowContext, p.read, p.id, p.scope)
		}
		free := errors.Is(err, errFree)
		switch {
		case free && (!errors.Is(lost, errEnded) || errors.Is(lost, sql.ErrTxDone) || p.dialect == MySQL):
			p.Rollback()
			return nil, lost
		case free, errors.Is(err, errUnfinished): // statements of fn may have committed by themselves
			p.Doubt()
			_ = core.Hold(ctx, errEnded.Error()) // without Redis there is nothing to hold
			return nil, lost
		case found == nil && pause(bounded):
		case found == nil:
			return nil, fmt.Errorf("%w: %w: %w", core.ErrUndecided, lost, errors.Join(err, bounded.Err()))
		case !bytes.Equal(run, p.run):
			return p.found(ctx, found)
		default:
			p.Commit(value)
			return value, nil
		}
	}
}

// found completes the attempt with what an earlier run has committed.
func (p *proving) found(ctx context.Context, c *core.Committed) ([]byte, error) {
	return c.Value, p.Complete(ctx, c)
}

// Prove inserts the proof in a transaction of your own, before its effect. After an error, roll back. The error is a
// [core.CompletedError] if an earlier run has committed; then the record in Redis is completed. The proof has no value,
// so a later caller gets none that Redis has lost. A run calls it once: if the transaction fails after it, call
// [core.Release] and return, and the next attempt begins a transaction of its own. Prefer [Store.InTx], which also
// finds out what has become of a commit without a reply.
//
// The transaction must be one in the database of the store. In PostgreSQL above READ COMMITTED, a conflict with another attempt is
// an error 40001: begin anew.
func (s *Store) Prove(ctx context.Context, tx *sql.Tx) error {
	if tx == nil {
		return invalid("Prove: the transaction is nil")
	}
	p, err := s.proving(ctx)
	if err != nil {
		return err
	}
	inserted, err := p.insertRow(ctx, tx, []byte{})
	if inserted {
		return nil
	}
	p.Rollback() // unless the row is found
	var found *core.Committed
	if err == nil {
		found, _, err = s.find(ctx, tx.QueryRowContext, s.readLocked, p.id, p.scope)
	}
	switch {
	case err != nil:
		return err
	case found == nil:
		return errors.New("holdfast: sqllock: another run has committed a proof that this transaction does not see: begin anew")
	}
	_, err = p.found(ctx, found)
	return err
}

// pause returns false if ctx has ended.
func pause(ctx context.Context) bool {
	select {
	case <-time.After(retryPause):
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
