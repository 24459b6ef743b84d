package check

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/lab/faults/history"
)

// Report is what a history shows.
type Report struct {
	Topology   string
	TTL        time.Duration
	Violations []string
	Apart      map[string]int // overlaps that were unavoidable, by their reason
	Faults     map[string]int // by row and name
	Rows       map[int]int
	Injected   int            // by the nemesis
	Returns    map[string]int // operations and how they came out
	Subjects   map[string]int // grants and begun runs, by what was asked for
	Grants     int
	Tokens     int // compared
	Probes     int
	HandOvers  int         // leases of which a probe found the token of an earlier one of the same process
	Writes     int         // fenced
	Refused    int         // of them
	Stale      int         // unfenced writes with an old token: the baseline
	Permits    int         // leases of semaphores whose limit was checked
	InUse      map[int]int // the most permits in use at once, by n of the last one granted
	OnceKeys   int
	Freed      Spread // from a heal to the next grant of a name
	Overdue    Spread // of calls beyond their deadline
	Told       Spread // of losses after the end of the lease
	Lasted     time.Duration
}

// Check runs all checkers.
func Check(events []history.Event) *Report {
	r := NewReport()
	if len(events) == 0 {
		r.violated("the history is empty")
		return r
	}
	r.Lasted = time.Duration(events[len(events)-1].At - events[0].At)
	v := newView(events)
	r.Topology, r.TTL = v.topology, v.ttl
	r.count(events)
	for _, check := range []func(*view){
		r.enough, r.exclusion, r.limits, r.tokens, r.belief, r.losses, r.fence, r.liveness, r.left, r.once, r.punctuality,
	} {
		check(v)
	}
	return r
}

func (r *Report) violated(format string, args ...any) {
	r.Violations = append(r.Violations, fmt.Sprintf(format, args...))
}

// apart counts something that would be a violation if a fault did not excuse it.
func (r *Report) apart(why, what string) { r.Apart[what+": "+why]++ }

// judge is violated, unless a fault in that time excuses it.
func (r *Report) judge(v *view, from, to int64, what, format string, args ...any) {
	if why := v.excuse(from, to); why != "" {
		r.apart(why, what)
		return
	}
	r.violated(what+": "+format, args...)
}

// Floor is how many grants there must be before the first fault for the run to prove anything.
const Floor = 10

// enough: a run in which nothing was locked proves nothing.
func (r *Report) enough(v *view) {
	if len(v.faults) == 0 {
		return
	}
	if n := slices.IndexFunc(v.leases, func(l *lease) bool { return l.from > v.faults[0].from }); n >= 0 && n < Floor {
		r.violated("inconclusive: %d grants before the first fault", n)
	} else if len(v.leases) < Floor {
		r.violated("inconclusive: %d grants", len(v.leases))
	}
}

func (r *Report) count(events []history.Event) {
	for _, e := range events {
		switch {
		case e.Kind == history.Fault && e.Row == 0:
			r.Faults[" 0 promotions, also those above"]++
		case e.Kind == history.Fault:
			r.Rows[e.Row]++
			if e.Row != 53 { // which is only another name for two of them
				r.Injected++
			}
			r.Faults[fmt.Sprintf("%2d %s", e.Row, e.Name)]++
		case e.Kind == history.Heal && e.Loses == "not done":
			r.Rows[e.Row]--
			r.Injected--
			r.Faults[fmt.Sprintf("%2d %s", e.Row, e.Name)]--
		case e.Kind == history.Call && e.Row > 0:
			r.Rows[e.Row]++
			r.Faults[fmt.Sprintf("%2d by a worker itself", e.Row)]++
		case e.Kind == history.Up && e.Row > 0:
			r.Rows[e.Row]++
			r.Faults[fmt.Sprintf("%2d workers that read from replicas", e.Row)]++
		case e.Kind == history.Return:
			outcome := e.Err
			if outcome == "" {
				outcome = "ok"
			}
			r.Returns[e.Op+" "+outcome]++
			r.subject(e)
		case e.Kind == history.Write && e.Unfenced && e.Refused:
			r.Stale++
		}
	}
}

// subject counts a grant or a run by its strategy. The limit of a semaphore makes no difference.
func (r *Report) subject(e history.Event) {
	switch {
	case e.Err != "" || !acquires(e.Op) && e.Op != "begin":
	case e.Limit > 0:
		r.Subjects["semaphore"]++
	default:
		r.Subjects[e.Strategy]++
	}
}

// Print writes the report for people.
func (r *Report) Print(out io.Writer) {
	fmt.Fprintf(out, "%s, %v: %d grants, %d tokens compared, %d probes (%d after a hand-over), %d writes, %d refused; %d stale without a fence\n",
		r.Topology, r.Lasted.Round(time.Second), r.Grants, r.Tokens, r.Probes, r.HandOvers, r.Writes, r.Refused, r.Stale)
	fmt.Fprintf(out, "%d leases of semaphores; the most permits in use by n:", r.Permits)
	for _, limit := range slices.Sorted(maps.Keys(r.InUse)) {
		fmt.Fprintf(out, " %d of %d;", r.InUse[limit], limit)
	}
	fmt.Fprintln(out)
	fmt.Fprintf(out, "%d keys of Once\n", r.OnceKeys)
	fmt.Fprintf(out, "freed after a heal: %v\ncalls beyond their deadline: %v\nlosses told late: %v\n",
		r.Freed, r.Overdue, r.Told)
	table(out, "faults", r.Faults)
	table(out, "calls", r.Returns)
	table(out, "grants and runs", r.Subjects)
	table(out, "unavoidable", r.Apart)
	for _, violation := range r.Violations {
		fmt.Fprintln(out, "VIOLATION", violation)
	}
	fmt.Fprintf(out, "%d violations\n", len(r.Violations))
}

func table(out io.Writer, title string, counts map[string]int) {
	fmt.Fprintf(out, "%s:", title)
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(out, " %s %d;", name, counts[name])
	}
	fmt.Fprintln(out)
}
