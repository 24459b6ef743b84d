package main

import (
	"context"
	"errors"

	bolt "go.etcd.io/bbolt"
)

// audit is what the database says after the sale, and the payment gateway.
type audit struct {
	start   int // in stock before the sale
	left    int
	orders  int
	doubled int  // users with more than one order
	ordered int  // users with an order
	rising  bool // every order has a larger token than the one before
	passed  int  // orders sold by another replica than the one before
	quotes  int
	clashed int // quotes with a number that another one of the same cart has
	charges int
	twice   int // orders with more than one charge

	settlements int
	ticks       int // of the schedule, that were settled

	receipts int // sent
	again    int // orders with more than one

	calls int // of the gateway
	peak  int // the most of them at a time
}

// audit reads the whole database in one transaction. The tokens are compared in the order in which the orders were
// inserted.
func (s *store) audit(ctx context.Context, item string, start int) (audit, error) {
	a := audit{start: start}
	err := s.read(ctx, func(tx *bolt.Tx) error {
		return errors.Join(get(tx, stockTable, item, &a.left), a.readOrders(tx, item), a.readWork(tx))
	})
	return a, err
}

func (a *audit) readOrders(tx *bolt.Tx, item string) error {
	buyers := count[string]{}
	a.rising = true
	var before order
	for o, err := range rows[order](tx, ordersTable, "") {
		if err != nil {
			return err
		}
		if o.Item != item {
			continue
		}
		if a.orders > 0 && o.Token <= before.Token {
			a.rising = false
		}
		if a.orders > 0 && o.Replica != before.Replica {
			a.passed++
		}
		a.orders++
		buyers[o.User]++
		before = o
	}
	a.ordered, a.doubled = len(buyers), buyers.several()
	return nil
}

// readWork reads what was done for carts and orders, and by the schedule.
func (a *audit) readWork(tx *bolt.Tx) error {
	quotes, quotesErr := countRows(tx, quotesTable, func(q quote) quote {
		return quote{User: q.User, Cart: q.Cart, Number: q.Number}
	})
	charges, chargesErr := countRows(tx, chargesTable, func(c charge) int64 { return c.Order })
	ticks, ticksErr := countRows(tx, settlementsTable, func(s settlement) int64 { return s.Tick })
	receipts, receiptsErr := countRows(tx, receiptsTable, func(r sentReceipt) int64 { return r.Order })
	a.quotes, a.clashed = quotes.rows(), quotes.rows()-len(quotes)
	a.charges, a.twice = charges.rows(), charges.several()
	a.settlements, a.ticks = ticks.rows(), len(ticks)
	a.receipts, a.again = receipts.rows(), receipts.several()
	return errors.Join(quotesErr, chargesErr, ticksErr, receiptsErr)
}

// count is how many rows there are for a thing.
type count[Thing comparable] map[Thing]int

// countRows counts the rows of a table by the thing that each is about.
func countRows[Row any, Thing comparable](tx *bolt.Tx, table string, about func(Row) Thing) (count[Thing], error) {
	c := count[Thing]{}
	for row, err := range rows[Row](tx, table, "") {
		if err != nil {
			return nil, err
		}
		c[about(row)]++
	}
	return c, nil
}

// rows is the number of all rows.
func (c count[Thing]) rows() (n int) {
	for _, rows := range c {
		n += rows
	}
	return n
}

// several is the number of things that have more than one row.
func (c count[Thing]) several() (n int) {
	for _, rows := range c {
		if rows > 1 {
			n++
		}
	}
	return n
}

// oversold is the number of orders that cannot be delivered.
func (a audit) oversold() int { return max(0, a.orders-a.start) }
