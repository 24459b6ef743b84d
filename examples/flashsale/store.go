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

// schema has no UNIQUE (user) and no CHECK (left >= 0), and nothing below adds to left in SQL. A database can
// guard a single table like this by itself; the example stands for the many cases in which it cannot, because
// the work behind the decision is elsewhere: a payment, another service, a file.
//
// The fence of a row is the largest fencing token that ever wrote it.
const schema = `
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
CREATE INDEX orders_of_user ON orders (user);
`

// errStale refuses a write with a fencing token that is smaller than one seen before: its sender lost the lock,
// did not notice in time, and somebody else has written since.
var errStale = errors.New("stale write refused by the fence")

// order is one sale.
type order struct {
	ID        int64  `json:"order"`
	User      string `json:"user"`
	Item      string `json:"item"`
	Replica   string `json:"replica"`
	UserToken int64  `json:"user_token"` // of the lock on the user
	Token     int64  `json:"token"`      // of the lock on the stock
}

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

// hasOrder reports whether a user has an order.
func (s *store) hasOrder(ctx context.Context, user string) (has bool, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM orders WHERE user = ?)`, user).Scan(&has)
	return has, err
}

// left reads how many are left of an item.
func (s *store) left(ctx context.Context, item string) (left int, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT left FROM stock WHERE item = ?`, item).Scan(&left)
	return left, err
}

// sell writes what the caller has decided: the number that is left now, and the order, whose ID it sets.
//
// The transaction makes one of the two writes, so that a crash cannot leave half a sale. It does not help
// against other buyers, because what the decision rests on was read before it; only the locks do. And if a
// lock was lost without its holder noticing, the fences do: of two writers the later grant wins.
func (s *store) sell(ctx context.Context, o *order, left int) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // has no effect after Commit
	_, err = s.fenced(tx.ExecContext(ctx,
		`UPDATE stock SET left = ?, fence = ? WHERE item = ? AND fence <= ?`,
		left, o.Token, o.Item, o.Token))
	if err != nil {
		return err
	}
	inserted, err := s.fenced(tx.ExecContext(ctx,
		`INSERT INTO orders (user, item, replica, user_token, token) SELECT ?, ?, ?, ?, ?
		WHERE NOT EXISTS (SELECT 1 FROM orders WHERE user = ? AND user_token > ?)`,
		o.User, o.Item, o.Replica, o.UserToken, o.Token, o.User, o.UserToken))
	if err != nil {
		return err
	}
	if o.ID, err = inserted.LastInsertId(); err != nil {
		return err
	}
	return tx.Commit()
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
