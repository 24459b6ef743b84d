package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"

	_ "modernc.org/sqlite" // SQLite in pure Go
)

// schema has no UNIQUE (user), no CHECK (left >= 0) and no other constraint that would refuse what the guards are there
// to prevent, and nothing below adds to left in SQL. A database can guard a single table like these by itself; the
// example stands for the many cases in which it cannot, because the work behind the decision is elsewhere: a payment,
// another service, a file.
//
// The fence of a row is the largest fencing token that ever wrote it; where rows are only added, it is the largest
// token of those there are. Charges need none: a payment that is lost is not followed by another, see locked.
const schema = `
CREATE TABLE quotes (
	user   TEXT NOT NULL,
	cart   TEXT NOT NULL,
	number INTEGER NOT NULL,
	cents  INTEGER NOT NULL,
	token  INTEGER NOT NULL
);
CREATE INDEX quotes_of_cart ON quotes (user, cart);
CREATE TABLE stock (
	item  TEXT PRIMARY KEY,
	left  INTEGER NOT NULL,
	fence INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE orders (
	id         INTEGER PRIMARY KEY AUTOINCREMENT,
	user       TEXT NOT NULL,
	item       TEXT NOT NULL,
	replica    TEXT NOT NULL,
	user_token INTEGER NOT NULL,
	token      INTEGER NOT NULL
);
CREATE TABLE settlements (
	tick    INTEGER NOT NULL,
	replica TEXT NOT NULL,
	orders  INTEGER NOT NULL
);
CREATE TABLE receipts (
	order_id INTEGER NOT NULL,
	replica  TEXT NOT NULL,
	token    INTEGER NOT NULL
);
CREATE INDEX receipts_of_order ON receipts (order_id);
CREATE INDEX orders_of_user ON orders (user);
CREATE TABLE charges (
	id       INTEGER PRIMARY KEY AUTOINCREMENT,
	order_id INTEGER NOT NULL,
	cents    INTEGER NOT NULL
);
`

// errStale refuses a write with a fencing token that is smaller than one seen before: its sender lost the lock,
// did not notice in time, and somebody else has written since.
var errStale = errors.New("stale write refused by the fence")

// store is one replica's handle on the database.
type store struct {
	db    *sql.DB
	stale atomic.Int64 // writes refused
}

// createDatabase makes the database file with stock in it.
func createDatabase(ctx context.Context, path, item string, left int) error {
	s, err := openStore(path)
	if err != nil {
		return err
	}
	_, err = s.db.ExecContext(ctx, schema+`INSERT INTO stock (item, left) VALUES (?, ?)`, item, left)
	if err != nil {
		err = fmt.Errorf("create the database: %w", err)
	}
	return errors.Join(err, s.db.Close())
}

func openStore(path string) (*store, error) {
	const settings = "?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_pragma=synchronous(normal)" +
		"&_txlock=immediate"
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(path)+settings)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	db.SetMaxOpenConns(8)
	db.SetMaxIdleConns(8)
	return &store{db: db}, nil
}

// fenced turns a write that changed nothing into errStale.
func (s *store) fenced(result sql.Result, err error) (sql.Result, error) {
	if err != nil {
		return nil, err
	}
	changed, err := result.RowsAffected()
	if err == nil && changed == 0 {
		s.stale.Add(1)
		err = errStale
	}
	return result, err
}
