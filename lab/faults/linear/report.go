package linear

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// Count is what was judged by one model.
type Count struct {
	Partitions int // pieces of a long one count one by one
	Operations int
	Excused    int // leases that a fault may have made Redis forget
	Unknown    int // partitions without a verdict
	Illegal    int // partitions without a possible order
}

// Report is what the models say of a history. An empty one comes from [NewReport].
type Report struct {
	Models   map[string]Count // four of a mutex, read-write, semaphore, election, register
	Baseline Count            // the unfenced side of the register, which has to be illegal where a token was old
	Illegal  []string         // one line for each partition without a possible order
	Unknown  []string         // the partitions for which the search had no time: neither legal nor illegal

	found []part // the illegal ones, for Draw
}

// NewReport returns a report of nothing, to which others can be added.
func NewReport() *Report { return &Report{Models: make(map[string]Count)} }

// Add adds what another report counts.
func (r *Report) Add(other *Report) {
	for model, c := range other.Models {
		r.Models[model] = r.Models[model].plus(c)
	}
	r.Baseline = r.Baseline.plus(other.Baseline)
	r.Illegal = append(r.Illegal, other.Illegal...)
	r.Unknown = append(r.Unknown, other.Unknown...)
	r.found = append(r.found, other.found...)
}

func (c Count) plus(other Count) Count {
	return Count{
		c.Partitions + other.Partitions, c.Operations + other.Operations, c.Excused + other.Excused,
		c.Unknown + other.Unknown, c.Illegal + other.Illegal,
	}
}

// Print writes the table of RESULTS.md, and a line for each partition that is illegal or unknown.
func (r *Report) Print(out io.Writer) {
	fmt.Fprintf(out, "| model | partitions | operations | excused leases | unknown | illegal |\n|---|---|---|---|---|---|\n")
	all := Count{}
	for _, model := range slices.Sorted(maps.Keys(r.Models)) {
		r.Models[model].print(out, model)
		all = all.plus(r.Models[model])
	}
	all.print(out, "all")
	r.Baseline.print(out, baseline)
	for _, name := range r.Unknown {
		fmt.Fprintln(out, "UNKNOWN", name)
	}
	for _, line := range r.Illegal {
		fmt.Fprintln(out, "ILLEGAL", line)
	}
}

func (c Count) print(out io.Writer, model string) {
	fmt.Fprintf(out, "| %s | %d | %d | %d | %d | %d |\n", model, c.Partitions, c.Operations, c.Excused, c.Unknown, c.Illegal)
}

// illegal notes a partition, and which operation fits nowhere in the longest order that was found.
func (r *Report) illegal(p part) {
	r.found = append(r.found, p)
	_, info := porcupine.CheckOperationsVerbose(p.rules, p.ops, searchTimeout)
	var longest []porcupine.Operation
	for _, order := range slices.Concat(info.PartialLinearizationsOperations()...) {
		if len(order) > len(longest) {
			longest = order
		}
	}
	placed := make(map[any]int)
	for _, op := range longest {
		placed[op.Input]++
	}
	stuck := slices.MinFunc(p.ops, func(a, b porcupine.Operation) int {
		if n := cmp.Compare(placed[a.Input], placed[b.Input]); n != 0 {
			return n
		}
		return cmp.Compare(a.Return, b.Return)
	})
	r.Illegal = append(r.Illegal, fmt.Sprintf("%s %q: %d of %d operations have an order; the next, %s (%s to %s), has no place in it",
		p.model, p.name, len(longest), len(p.ops), p.rules.DescribeOperation(stuck.Input, nil), clock(stuck.Call), clock(stuck.Return)))
}

func clock(at int64) string {
	if at == never {
		return "the end"
	}
	return fmt.Sprintf("%.6fs", time.Duration(at).Seconds())
}
