package main

import (
	"context"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// cartPrefix begins the keys of the quotes for a cart. No other cart, however it is named, has keys that begin alike.
func cartPrefix(user, cart string) string { return fmt.Sprintf("%q %q ", user, cart) }

// lastQuote reads the number of the last quote for a cart, 0 if there is none.
func (s *store) lastQuote(ctx context.Context, user, cart string) (number int, err error) {
	err = s.read(ctx, func(tx *bolt.Tx) error {
		for q, err := range rows[quote](tx, quotesTable, cartPrefix(user, cart)) {
			if err != nil {
				return err
			}
			number = max(number, q.Number)
		}
		return nil
	})
	return number, err
}

// addQuote writes a quote, unless one was written under a later grant of the lock.
func (s *store) addQuote(ctx context.Context, q *quote) error {
	return s.write(ctx, func(tx *bolt.Tx) error {
		if err := fence(tx, "cart "+cartPrefix(q.User, q.Cart), q.Token); err != nil {
			return err
		}
		_, err := insert(tx, quotesTable, cartPrefix(q.User, q.Cart), q)
		return err
	})
}

// left reads how many are left of an item.
func (s *store) left(ctx context.Context, item string) (left int, err error) {
	err = s.read(ctx, func(tx *bolt.Tx) error { return get(tx, stockTable, item, &left) })
	return left, err
}

// sell writes what the caller has decided: the number that is left now, and the order, whose ID it sets.
//
// The transaction makes one of the two writes, so that a crash cannot leave half a sale. It does not help
// against other buyers, because what the decision rests on was read before it; only the locks do. And if a
// lock was lost without its holder noticing, the fences do: of two writers the later grant wins.
func (s *store) sell(ctx context.Context, o *order, left int) error {
	return s.write(ctx, func(tx *bolt.Tx) (err error) {
		if err := fence(tx, "stock "+o.Item, o.Token); err != nil {
			return err
		}
		if err := set(tx, stockTable, o.Item, left); err != nil {
			return err
		}
		if err := fence(tx, "user "+o.User, o.UserToken); err != nil {
			return err
		}
		o.ID, err = insert(tx, ordersTable, "", o)
		return err
	})
}

// buyer returns whose order that is.
func (s *store) buyer(ctx context.Context, id int64) (user string, err error) {
	var o order
	err = s.read(ctx, func(tx *bolt.Tx) error { return get(tx, ordersTable, rowKey("", id), &o) })
	if err == nil && o.User == "" {
		err = errNoOrder
	}
	return o.User, err
}

// addCharge writes a charge and sets its ID.
func (s *store) addCharge(ctx context.Context, c *charge) error {
	return s.write(ctx, func(tx *bolt.Tx) (err error) {
		c.ID, err = insert(tx, chargesTable, "", c)
		return err
	})
}
