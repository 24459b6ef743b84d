package main

import "fmt"

// state is how an invariant came out.
type state string

const (
	holds   state = "✓"
	broken  state = "✗"
	skipped state = "–"
)

// invariant is something that must be true of the database after every sale.
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
	a := r.audit
	most := min(a.start, r.config.users)
	rising := check(a.rising, "the stock lock's fencing tokens rise strictly from order to order")
	if r.config.unguarded {
		rising = invariant{skipped, "no lock, no fencing tokens"}
	}
	sold := check(a.orders == most, "%d could be sold, %d were", most, a.orders)
	if r.interrupted || r.tally.codes[codeBusy] > 0 && a.orders < most {
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
		return fmt.Sprintf("The control broke, as expected: without the locks, %d of %d orders were too many\n"+
			"and %d users have two. Hence exit status %d.",
			r.audit.oversold(), r.audit.orders, r.audit.doubled, exitBroken)
	case r.config.unguarded:
		return "The control did not break: the crowd was too small to show anything (-users, -clients, -attempts)."
	case r.broken():
		return "BROKEN: see the crosses above."
	default:
		return fmt.Sprintf("All went right: %d orders by %d users, on %d replicas.",
			r.audit.orders, r.audit.ordered, r.config.replicas)
	}
}
