package main

import "fmt"

// invariant is something that must be true after every sale.
type invariant struct {
	holds bool
	text  string
}

func check(holds bool, format string, args ...any) invariant {
	return invariant{holds: holds, text: fmt.Sprintf(format, args...)}
}

func (i invariant) String() string {
	if i.holds {
		return "✓  " + i.text
	}
	return "✗  " + i.text
}

// invariants judges the sale. What a sale cannot show is not among them: the order of fencing tokens if there was no
// lock, and the sale of the whole stock if it was interrupted or if users were asked to try again.
func (r *report) invariants() []invariant {
	a, t := r.audit, r.tally
	all := []invariant{
		check(a.orders <= a.start, "orders do not exceed the stock: %d orders, %d vouchers", a.orders, a.start),
		check(a.orders == a.start-a.left, "stock before - stock after = orders: %d - %d = %d", a.start, a.left, a.orders),
		check(a.doubled == 0, "no user has two orders: %d users, %d orders", a.ordered, a.orders),
	}
	if most := min(a.start, r.config.users); a.orders <= most && !r.incomplete(most) {
		all = append(all, check(a.orders == most, "no voucher is left that a user wanted: %d of %d are sold", a.orders, most))
	}
	if !r.config.unguarded {
		all = append(all, check(a.rising, "the fencing token of the stock lock grows with each order"))
	}
	return append(all,
		check(a.clashed == 0, "each quote of a cart has its own number: %d quotes, %d clashes", a.quotes, a.clashed),
		check(a.charges == a.orders, "charges = orders: %d = %d", a.charges, a.orders),
		check(a.twice == 0, "no order is charged twice: %d orders are", a.twice),
		check(a.peak <= r.config.gateway, "the payment gateway allows %d calls at a time: %d at most", r.config.gateway, a.peak),
		check(t.differing == 0, "each client got one receipt, however often it paid: %d of %d clients",
			t.payments-t.differing, t.payments),
		check(a.settlements == a.ticks, "each tick of the schedule is settled once: %d settlements, %d ticks",
			a.settlements, a.ticks),
		check(a.receipts == a.orders, "receipts sent = orders: %d = %d", a.receipts, a.orders),
		check(a.again == 0, "no order has two receipts: %d orders have", a.again))
}

// incomplete reports whether fewer than most orders are no fault: the sale was interrupted, or users did not get the
// lock in time.
func (r *report) incomplete(most int) bool {
	return r.interrupted || r.tally.codes[codeBusy] > 0 && r.audit.orders < most
}

// broken reports whether any invariant broke.
func (r *report) broken() bool {
	for _, i := range r.invariants() {
		if !i.holds {
			return true
		}
	}
	return false
}

// verdict sums the sale up.
func (r *report) verdict() string {
	a := r.audit
	switch {
	case r.config.unguarded && r.broken():
		return wrap(fmt.Sprintf("The baseline broke, as expected. Without the guards, %d of %d orders have no voucher, "+
			"and %d users have more than one order. %d orders were charged more than once, and %d have more than one receipt. "+
			"The payment gateway, which allows %d calls at a time, got %d. The exit status is %d because invariants broke.",
			a.oversold(), a.orders, a.doubled, a.twice, a.again, r.config.gateway, a.peak,
			exitBroken))
	case r.config.unguarded:
		return wrap("The baseline did not break. The crowd was too small to show anything: try more -users, -clients or " +
			"-attempts.")
	case r.broken():
		return "BROKEN: see the lines with ✗ above."
	default:
		return wrap(fmt.Sprintf("All invariants hold: %d orders by %d users on %d replicas, each charged once and with one "+
			"receipt.", a.orders, a.ordered, r.config.replicas))
	}
}
