package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/holdfast-go/holdfast/lab/bench/report"
)

// text returns what the calculator prints.
func (p Plan) text(d Demand) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s\t"+format+"\n", append([]any{name}, args...)...)
	}
	line("commands", "%s /s", report.Number(p.Load.Commands))
	line("server CPU", "%.2f cores (%.2f if commands share pipelines)", p.cores(), p.Load.Utilisation().Low)
	line("masters", "%d at no more than %.0f%% (%d if commands share pipelines)", p.Masters, 100*d.Utilisation, p.Batched)
	line("utilisation", "%.0f%% of the core of each", 100*p.Each.Expected)
	line("leases held", "%s", report.Number(p.Leases))
	line("leases renewed", "%s /s", report.Number(p.Renewals))
	line("records of Once", "%s", report.Number(p.Records))
	line("memory", "%s MB of all masters", report.Number(p.Memory/1e6))
	line("connections", "%d to %d of each master", p.Connections[0], p.Connections[1])
	line("network", "%s MB/s to Redis, %s MB/s from it", report.Number(p.In/1e6), report.Number(p.Out/1e6))
	line("client CPU", "%s cores of all processes", report.Number(p.Client))
	_ = w.Flush() // into memory
	return b.String()
}
