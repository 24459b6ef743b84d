package main

import (
	"context"
	"database/sql"
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

// audit asks the database. The tokens are compared in the order in which the database inserted the orders.
func (s *store) audit(ctx context.Context, item string, start int) (audit, error) {
	a := audit{start: start}
	err := s.db.QueryRowContext(ctx, `
		WITH
		sold AS (
			SELECT user, token > LAG(token) OVER history AS rose, replica <> LAG(replica) OVER history AS passed
			FROM orders WHERE item = @item WINDOW history AS (ORDER BY id)
		),
		buyers AS (SELECT COUNT(*) AS orders FROM sold GROUP BY user),
		numbers AS (SELECT COUNT(*) AS quotes FROM quotes GROUP BY user, cart, number),
		paid AS (SELECT COUNT(*) AS charges FROM charges GROUP BY order_id),
		mailed AS (SELECT COUNT(*) AS receipts FROM receipts GROUP BY order_id)
		SELECT
			(SELECT left FROM stock WHERE item = @item),
			(SELECT COUNT(*) FROM sold),
			(SELECT COUNT(*) FROM buyers),
			(SELECT COUNT(*) FROM buyers WHERE orders > 1),
			(SELECT COUNT(*) = 0 FROM sold WHERE NOT rose),
			(SELECT COUNT(*) FROM sold WHERE passed),
			(SELECT COUNT(*) FROM quotes),
			(SELECT COALESCE(SUM(quotes - 1), 0) FROM numbers),
			(SELECT COUNT(*) FROM charges),
			(SELECT COUNT(*) FROM paid WHERE charges > 1),
			(SELECT COUNT(*) FROM settlements),
			(SELECT COUNT(DISTINCT tick) FROM settlements),
			(SELECT COUNT(*) FROM receipts),
			(SELECT COUNT(*) FROM mailed WHERE receipts > 1)`,
		sql.Named("item", item)).Scan(
		&a.left, &a.orders, &a.ordered, &a.doubled, &a.rising, &a.passed,
		&a.quotes, &a.clashed, &a.charges, &a.twice, &a.settlements, &a.ticks,
		&a.receipts, &a.again)
	return a, err
}

// oversold is the number of orders that cannot be delivered.
func (a audit) oversold() int { return max(0, a.orders-a.start) }
