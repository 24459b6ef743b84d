//go:build unix

package sql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/stdlib"
)

// The steps of a payment at which a fault happens.
const (
	beforeInsert   = "before insert"
	afterInsert    = "after insert"
	beforeCommit   = "before commit"
	replyLost      = "reply of commit lost"
	afterCommit    = "after commit"
	beforeComplete = "before Complete"
	beforeAnswer   = "before the answer"
)

var steps = []string{beforeInsert, afterInsert, beforeCommit, replyLost, afterCommit, beforeComplete, beforeAnswer}

// faulty is a database whose transactions call at at each step. With cut, the connection breaks there, or the reply does.
func faulty(driverName, dsn string, at func(step string) (cut bool)) (*sql.DB, error) {
	db, err := sql.Open(driverName, dsn)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	opener, ok := db.Driver().(driver.DriverContext)
	if !ok {
		return sql.OpenDB(&faultyConnector{plain{db.Driver(), dsn}, at}), nil
	}
	connector, err := opener.OpenConnector(dsn)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(&faultyConnector{connector, at}), nil
}

// plain is a connector of a driver that has none.
type plain struct {
	driver driver.Driver
	dsn    string
}

func (p plain) Connect(context.Context) (driver.Conn, error) { return p.driver.Open(p.dsn) }
func (p plain) Driver() driver.Driver                        { return p.driver }

type faultyConnector struct {
	driver.Connector
	at func(string) bool
}

func (c *faultyConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &faultyConn{conn, c.at}, nil
}

type faultyConn struct {
	driver.Conn
	at func(string) bool
}

// pass calls at at a step, and breaks the connection if it says so.
func (c *faultyConn) pass(step string) {
	if !c.at(step) {
		return
	}
	if pg, ok := c.Conn.(*stdlib.Conn); ok {
		_ = pg.Conn().PgConn().Conn().Close()
		return
	}
	_ = c.Conn.Close()
}

func (c *faultyConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &faultyTx{tx, c}, nil
}

func (c *faultyConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	first := strings.HasPrefix(query, "INSERT INTO") && strings.Contains(query, "holdfast_proof") || strings.HasPrefix(query, "SELECT pay")
	if first {
		c.pass(beforeInsert)
	}
	if query == "COMMIT" { // of InTx in MySQL
		return driver.ResultNoRows, c.commit(func() error {
			_, err := c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
			return err
		})
	}
	result, err := c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
	if errors.Is(err, driver.ErrSkip) { // database/sql would prepare the statement itself
		stmt, prepareErr := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
		if prepareErr != nil {
			return nil, prepareErr
		}
		defer stmt.Close()
		result, err = stmt.(driver.StmtExecContext).ExecContext(ctx, args)
	}
	if first && err == nil {
		c.pass(afterInsert)
	}
	return result, err
}

func (c *faultyConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (c *faultyConn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

func (c *faultyConn) ResetSession(ctx context.Context) error {
	if resetter, ok := c.Conn.(driver.SessionResetter); ok {
		return resetter.ResetSession(ctx)
	}
	return nil
}

func (c *faultyConn) IsValid() bool {
	if validator, ok := c.Conn.(driver.Validator); ok {
		return validator.IsValid()
	}
	return true
}

type faultyTx struct {
	driver.Tx
	conn *faultyConn
}

func (t *faultyTx) Commit() error { return t.conn.commit(t.Tx.Commit) }

// commit commits, with the steps before and after it.
func (c *faultyConn) commit(commit func() error) error {
	c.pass(beforeCommit)
	if err := commit(); err != nil {
		return err
	}
	if c.at(replyLost) {
		c.pass(replyLost)
		return errors.New("connection reset by peer")
	}
	return nil
}
