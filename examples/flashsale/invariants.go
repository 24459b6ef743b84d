package main

import "fmt"

// state is how an invariant came out.
type state string

const (
	holds   state = "✓"
	broken  state = "✗"
	skipped state = "–"
)

// invariant is something that must be true after every sale.
type invariant struct {
	state state
	text  string
}

func check(ok bool, format string, args ...any) invariant {
	i := invariant{state: holds, text: fmt.Sprintf(format, args...)}
	if !ok {
		i.state = broken
	}
	return i
}

// invariants judges the sale.
func (r *report) invariants() []invariant {
	a, t := r.audit, r.tally
	most := min(a.start, r.config.users)
	rising := check(a.rising, "the stock lock's fencing tokens rise strictly from order to order")
	if r.config.unguarded {
		rising = invariant{skipped, "no lock, no fencing tokens"}
	}
	sold := check(a.orders == most, "%d could be sold, %d were", most, a.orders)
	if r.interrupted || t.codes[codeBusy] > 0 && a.orders < most {
		sold.state = skipped // some were told to come again
	}
	return []invariant{
		check(a.orders == a.start-a.left,
			"orders = stock before - stock after: %d = %d - %d", a.orders, a.start, a.left),
		check(a.orders <= a.start, "no more orders than stock: %d of %d", a.orders, a.start),
		check(a.left >= 0, "the stock is not negative: %d", a.left),
		check(a.doubled == 0, "nobody has two orders: %d users, %d orders", a.ordered, a.orders),
		rising,
		sold,
		check(a.clashed == 0, "no two quotes of a cart have the same number: %d of %d do", a.clashed, a.quotes),
		check(a.charges == a.orders, "charges = orders: %d = %d", a.charges, a.orders),
		check(a.twice == 0, "nobody was charged twice: %d orders were", a.twice),
		check(a.settlements == a.ticks, "each tick of the schedule was settled once: %d ticks, %d settlements",
			a.ticks, a.settlements),
		check(a.receipts == a.orders, "receipts sent = orders: %d = %d", a.receipts, a.orders),
		check(a.again == 0, "nobody was sent two receipts: %d were", a.again),
		check(t.differing == 0, "every client got one receipt, however often it paid: %d of %d did",
			t.payments-t.differing, t.payments),
	}
}

// broken reports whether any invariant broke.
func (r *report) broken() bool {
	for _, i := range r.invariants() {
		if i.state == broken {
			return true
		}
	}
	return false
}

// verdict sums the sale up in a sentence.
func (r *report) verdict() string {
	switch {
	case r.config.unguarded && r.broken():
		a := r.audit
		return fmt.Sprintf("The control broke, as expected: without the guards, %d of %d orders were too many,\n"+
			"%d users have more than one, %d orders were charged more than once, and %d receipts sent again.\n"+
			"Hence exit status %d.",
			a.oversold(), a.orders, a.doubled, a.twice, a.again, exitBroken)
	case r.config.unguarded:
		return "The control did not break: the crowd was too small to show anything (-users, -clients, -attempts)."
	case r.broken():
		return "BROKEN: see the crosses above."
	default:
		return fmt.Sprintf("All went right: %d orders by %d users, each paid once, with one receipt, on %d replicas.",
			r.audit.orders, r.audit.ordered, r.config.replicas)
	}
}
