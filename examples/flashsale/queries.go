package main

import (
	"context"
	"database/sql"
	"errors"
)

// lastQuote reads the number of the last quote for a cart, 0 if there is none.
func (s *store) lastQuote(ctx context.Context, user, cart string) (number int, err error) {
	err = s.db.QueryRowContext(ctx,
		`SELECT COALESCE(MAX(number), 0) FROM quotes WHERE user = ? AND cart = ?`, user, cart).Scan(&number)
	return number, err
}

// addQuote writes a quote, unless one was written under a later grant of the lock.
func (s *store) addQuote(ctx context.Context, q *quote) error {
	_, err := s.fenced(s.db.ExecContext(ctx,
		`INSERT INTO quotes (user, cart, number, cents, token) SELECT ?, ?, ?, ?, ?
		WHERE NOT EXISTS (SELECT 1 FROM quotes WHERE user = ? AND cart = ? AND token > ?)`,
		q.User, q.Cart, q.Number, q.Cents, q.Token, q.User, q.Cart, q.Token))
	return err
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

// buyer returns whose order that is.
func (s *store) buyer(ctx context.Context, order int64) (user string, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT user FROM orders WHERE id = ?`, order).Scan(&user)
	if errors.Is(err, sql.ErrNoRows) {
		err = errNoOrder
	}
	return user, err
}

// addCharge writes a charge and sets its ID.
func (s *store) addCharge(ctx context.Context, c *charge) error {
	inserted, err := s.db.ExecContext(ctx, `INSERT INTO charges (order_id, cents) VALUES (?, ?)`, c.Order, c.Cents)
	if err != nil {
		return err
	}
	c.ID, err = inserted.LastInsertId()
	return err
}
