package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/lab/bench/election"
	"github.com/holdfast-go/holdfast/lab/bench/measure"
	"github.com/holdfast-go/holdfast/lab/bench/report"
	"github.com/holdfast-go/holdfast/lab/bench/xrate"
	"github.com/holdfast-go/holdfast/lab/gitcommit"
	"github.com/holdfast-go/holdfast/lab/permits"
)

// pagePart is the part of RESULTS.md that is written here.
const pagePart = "bench:limits"

// text returns all tables in Markdown.
func (s *settings) text(took time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured by `make -C lab limits-bench` of the commit %s in %.0f seconds on %d cores, with %s and x/rate %s.\n\n",
		gitcommit.Head(), took.Seconds(), runtime.NumCPU(), runtime.Version(), version(xrate.Module))
	fmt.Fprintf(&b, loadText+"\n\n%s\n%s\n", s.rounds, s.loadTable(1), s.loadTable(many))
	fmt.Fprintf(&b, permitsText+"\n\n%s\n", s.plays, s.permitsTable())
	fmt.Fprintf(&b, electionsText+"\n\n%s\n", s.leadTTL, s.resignations, s.crashes, s.electionsTable())
	fmt.Fprintf(&b, leadersText+"\n\n%s", s.plays, s.leadersTable())
	return b.String()
}

// loadTable is about that many callers.
func (s *settings) loadTable(size int) string {
	head := []string{"1 caller", "acquires/s", "spread", "commands per grant", "wait p50, p99 ms"}
	if size > 1 {
		head = []string{fmt.Sprintf("%d callers", size), "acquires/s", "spread", "commands per grant", "wait p50, p99, longest ms"}
	}
	rows := [][]string{head}
	for _, c := range semaphores(nil) {
		if size == 1 && c.Name == rateExample {
			continue // it does the same where no caller is refused
		}
		key := func(figure string) measure.Key {
			return measure.Key{Work: workPermits, Who: c.Name, Size: size, Figure: figure}
		}
		ms := func(figure string) string { return report.Number(s.book.Median(key(figure)) / 1000) }
		name, waits := c.Name, ms("wait p50 us")+", "+ms("wait p99 us")
		if size == 1 {
			name, _, _ = strings.Cut(name, ",")
		} else {
			waits += ", " + ms("wait longest us")
		}
		rate := s.book.Values(key("grants/s"))
		rows = append(rows, []string{
			name, report.Number(measure.Median(rate)), spread(rate), report.Number(s.book.Median(key("commands"))), waits,
		})
	}
	return report.Table(rows)
}

// spread is the spread of the middle half, in percent of the median.
func spread(values []float64) string {
	median := measure.Median(values)
	of := func(q float64) float64 { return 100 * (measure.Quantile(values, q)/median - 1) }
	return fmt.Sprintf("%+.0f … %+.0f%%", of(0.25), of(0.75))
}

func (s *settings) permitsTable() string {
	rows := [][]string{{"fault", permits.HoldfastName, "x/rate"}}
	for _, p := range permits.Plays() {
		rows = append(rows, []string{
			p.Name,
			s.outcomes.permits[played{p.Name, permits.HoldfastName}].String(),
			s.outcomes.permits[played{p.Name, rateShort}].String(),
		})
	}
	return report.Table(rows)
}

func (s *settings) electionsTable() string {
	rows := [][]string{{
		"5 candidates", "after a resignation p50, p99 ms", "after a crash p50, longest TTL", "commands/s, idle",
	}}
	for _, c := range election.All() {
		quantile := func(figure string, q float64) float64 {
			return measure.Quantile(s.book.Values(electionKey(c.Name, figure)), q)
		}
		ms := func(q float64) string { return report.Number(quantile("resignation us", q) / 1000) }
		rows = append(rows, []string{
			c.Name, ms(0.5) + ", " + ms(0.99),
			fmt.Sprintf("%.2f, %.2f", quantile("crash TTL", 0.5), quantile("crash TTL", 1)),
			report.Number(quantile("idle commands/s", 0.5)),
		})
	}
	return report.Table(rows)
}

func (s *settings) leadersTable() string {
	rows := [][]string{{"fault"}}
	for _, c := range election.All() {
		rows[0] = append(rows[0], c.Name)
	}
	for _, p := range election.Plays() {
		row := []string{p.Name}
		for _, c := range election.All() {
			row = append(row, s.outcomes.elections[played{p.Name, c.Name}].String())
		}
		rows = append(rows, row)
	}
	return report.Table(rows)
}

// version returns the version of a module in this program, or "unknown".
func version(module string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == module {
				return dep.Version
			}
		}
	}
	return "unknown"
}
