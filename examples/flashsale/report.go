package main

import (
	"fmt"
	"io"
	"time"

	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// report is the outcome of a sale.
type report struct {
	config      config
	tally       *tally
	audit       audit
	watch       *watch
	unsent      int           // tasks that are left
	mail        time.Duration // from when the crowd had left until the tasks were done
	stale       int64
	interrupted bool
	embedded    bool // the Redis
}

// print writes the figures, the invariants, what explains the duration, and the verdict.
func (r *report) print(out io.Writer) {
	fmt.Fprintln(out)
	if r.interrupted {
		fmt.Fprint(out, "Interrupted: this is what happened until then.\n\n")
	}
	r.printRequests(out)
	r.printDatabase(out)
	if !r.config.unguarded {
		r.printLock(out)
	}
	fmt.Fprintln(out, "Invariants, from the database and from what the clients got")
	for _, i := range r.invariants() {
		fmt.Fprintf(out, "  %s\n", i)
	}
	fmt.Fprintf(out, "\n%s\n\n%s\n", r.duration(), r.verdict())
}

// row writes one figure with what it means. Rows fit into 80 columns.
func row(out io.Writer, name string, value any, note string) {
	line := fmt.Sprintf("  %-27s %8v", name, value)
	if note != "" {
		line += "  " + note
	}
	fmt.Fprintln(out, line)
}

// rare writes a row for what does not happen in most sales, if it did.
func rare(out io.Writer, name string, n int, note string) {
	if n > 0 {
		row(out, name, n, note)
	}
}

// printRequests writes what the clients sent and which answers they got.
func (r *report) printRequests(out io.Writer) {
	t, c := r.tally, r.config
	fmt.Fprintln(out, "What the clients sent and got")
	row(out, "requests", len(t.all), fmt.Sprintf("in %s: %s", brief(t.took), perSecond(len(t.all), t.took)))
	row(out, "carts priced", t.codes[codePriced], fmt.Sprintf("%d requests for each cart", c.attempts))
	rare(out, "  no turn", t.codes[httplock.CodeLockConflict], "the lock on the cart was held too long")
	row(out, "ordered", t.codes[codeOrdered], perSecond(t.codes[codeOrdered], t.took))
	if !c.unguarded {
		row(out, "  refused: in progress", t.codes[httplock.CodeRequestInProgress], "the user's other request was running")
		row(out, "  refused: ordered before", t.codes[httplock.CodeAlreadyCompleted], "the user has an order")
	}
	row(out, "  refused: sold out", t.codes[codeSoldOut], "")
	rare(out, "  refused: busy", t.codes[codeBusy], fmt.Sprintf("no lock or permit within -patience %v", c.patience))
	rare(out, "  refused: stale", t.codes[codeStale], "the lock was lost before the write")
	row(out, "paid", t.codes[codePaid], r.unless("each answer comes from a charge", "the first answer to a payment"))
	if !c.unguarded {
		row(out, "  the same receipt again", t.codes[codeReplayed], "the recorded answer, not a charge")
	}
	row(out, "  broken off", t.codes[codeBrokenOff], "the client hung up, then asked again")
	row(out, "errors", t.failures, text(t.failure))
	row(out, "a request, median", brief(quantile(t.all, 0.5)), worst(t.all))
	row(out, "an order, median", brief(quantile(t.ordered, 0.5)), worst(t.ordered))
	fmt.Fprintln(out)
}

// printDatabase writes what the database holds after the sale.
func (r *report) printDatabase(out io.Writer) {
	a, c := r.audit, r.config
	fmt.Fprintln(out, "What the database holds after the sale, and what the gateway has seen")
	row(out, "vouchers in stock", a.left, fmt.Sprintf("of %d", a.start))
	row(out, "orders", a.orders, "")
	row(out, "  oversold", a.oversold(), "orders without a voucher")
	row(out, "  users with two orders", a.doubled, "")
	row(out, "quotes", a.quotes, "")
	row(out, "  with a number twice", a.clashed, "two requests priced a cart at once")
	row(out, "charges", a.charges, "beyond paid: for clients that hung up")
	row(out, "  orders charged twice", a.twice, "")
	row(out, "calls of the gateway", a.calls, "counted by the gateway itself")
	row(out, "  at a time, at most", a.peak, fmt.Sprintf("it allows %d, from %d replicas together", c.gateway, c.replicas))
	row(out, "settlements", a.settlements, fmt.Sprintf("%d ticks, scheduled on %d replicas", a.ticks, c.replicas))
	row(out, "receipts sent", a.receipts, "each was enqueued twice")
	row(out, "  orders with two", a.again, "")
	if !c.unguarded {
		row(out, "  duplicates skipped", r.watch.duplicates(), "acknowledged without sending")
		row(out, "stale writes refused", r.stale, "by their fencing tokens")
	}
	row(out, "  last task done after", brief(r.mail), "since the crowd left; "+r.unless("all ran", "some are retried"))
	rare(out, "  tasks left", r.unsent, "not sent when the sale ended")
	fmt.Fprintln(out)
}

// printLock writes what the lock on the stock did.
func (r *report) printLock(out io.Writer) {
	w := r.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintln(out, "The lock on the stock")
	row(out, "grants", w.granted, "orders, and tries once it was sold out")
	row(out, "  after waiting", w.waited, share(w.waited, w.granted))
	row(out, "  to another replica", r.audit.passed, share(r.audit.passed, r.audit.orders)+" of the orders")
	row(out, "wait, median", brief(quantile(w.waits, 0.5)), worst(w.waits))
	row(out, "held, median", brief(quantile(w.held, 0.5)), worst(w.held))
	row(out, "leases lost", w.lost, "")
	fmt.Fprintln(out)
}

// unless returns the one text for the baseline and the other one for a sale with guards.
func (r *report) unless(unguarded, guarded string) string {
	if r.config.unguarded {
		return unguarded
	}
	return guarded
}

// worst names the 99th percentile.
func worst(values []time.Duration) string {
	return "99 % within " + brief(quantile(values, 0.99))
}

// brief writes a duration with three digits at most.
func brief(d time.Duration) string {
	switch ms := float64(d) / float64(time.Millisecond); {
	case ms < 9.95:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 999.5:
		return fmt.Sprintf("%.0f ms", ms)
	default:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
}

func perSecond(n int, took time.Duration) string {
	return fmt.Sprintf("%.0f a second", float64(n)/took.Seconds())
}

func share(n, of int) string {
	return fmt.Sprintf("%.0f %%", 100*float64(n)/float64(max(of, 1)))
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
