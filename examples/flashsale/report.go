package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/holdfast-go/holdfast/middleware"
)

// report is the outcome of a sale.
type report struct {
	config      config
	tally       *tally
	audit       audit
	watch       *watch
	unsent      int // tasks that are left
	stale       int64
	interrupted bool
}

// print writes the table, the invariants and the verdict.
func (r *report) print(out io.Writer) {
	fmt.Fprintln(out)
	if r.interrupted {
		fmt.Fprint(out, "Interrupted: this is what happened until then.\n\n")
	}
	r.printTable(out)
	fmt.Fprintln(out, "\nInvariants, from the database and from what clients got:")
	for _, i := range r.invariants() {
		fmt.Fprintf(out, "  %s  %s\n", i.state, i.text)
	}
	fmt.Fprintln(out)
	fmt.Fprintln(out, r.verdict())
}

func (r *report) printTable(out io.Writer) {
	t, a, w := r.tally, r.audit, r.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name string, value any, note string) {
		fmt.Fprintf(table, "%s\t%8v\t%s\n", name, value, note)
	}
	row("requests", len(t.all), perSecond(len(t.all), t.took)+", in "+t.took.Round(10*time.Millisecond).String())
	row("carts priced", t.codes[codePriced], "")
	row("  refused: one is in progress", t.codes[middleware.CodeLockConflict], "")
	row("ordered", t.codes[codeOrdered], perSecond(t.codes[codeOrdered], t.took))
	row("  refused: one is in progress", t.codes[middleware.CodeRequestInProgress], "")
	row("  refused: has ordered already", t.codes[middleware.CodeAlreadyCompleted], "")
	row("  refused: sold out", t.codes[codeSoldOut], "")
	row("  refused: stock lock busy", t.codes[codeBusy], "")
	row("paid", t.codes[codePaid], "")
	row("  answered with the receipt of before", t.codes[codeReplayed], "")
	row("  broken off by the client", t.codes[codeBrokenOff], "")
	row("errors", t.failures, text(t.failure))
	row("oversold", a.oversold(), "")
	row("users with two orders", a.doubled, "")
	row("quotes with the number of another", a.clashed, "")
	row("orders charged twice", a.twice, "")
	row("settlements", a.settlements, fmt.Sprintf("for %d ticks of the schedule on %d replicas", a.ticks, r.config.replicas))
	row("receipts sent", a.receipts, fmt.Sprintf("each was enqueued twice; %d tasks are left", r.unsent))
	row("  duplicates acknowledged", w.replayed, "")
	row("orders with two receipts", a.again, "")
	row("stale writes refused by the fence", r.stale, "")
	row("latency of requests, median", quantile(t.all, 0.5), worst(t.all))
	row("latency of orders, median", quantile(t.ordered, 0.5), worst(t.ordered))
	if !r.config.unguarded {
		row("grants of the stock lock", w.granted, "")
		row("  after waiting", w.waited, share(w.waited, w.granted))
		row("  passed to another replica", a.passed, share(a.passed, a.orders)+" of the orders")
		row("wait for the stock lock, median", quantile(w.waits, 0.5), worst(w.waits))
		row("leases lost", w.lost, "")
	}
	table.Flush()
}

// worst names the 99th percentile.
func worst(values []time.Duration) string {
	return fmt.Sprintf("99 %% within %v", quantile(values, 0.99))
}

func perSecond(n int, took time.Duration) string {
	return fmt.Sprintf("%.0f per second", float64(n)/took.Seconds())
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
