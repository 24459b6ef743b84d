package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/lab/bench/report"
)

// pagePart is the part of RESULTS.md that is written here.
const pagePart = "scaling"

const (
	advised = 0.6 // utilisation of a master, at most
	percent = 100
)

var number = report.Number

// pageText returns all tables in Markdown.
func pageText(c Costs) (string, error) {
	broken, err := c.sizes()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Measured by `make -C lab scaling` in %.0f seconds on %s.\n\n", c.Seconds, c.Machine)
	for _, part := range []struct{ head, text, table string }{
		{"What one core carries", coreText, c.core()},
		{"Held, kept and renewed", heldText, c.held()},
		{"One name that all want", hotText, c.hot()},
		{"What a process adds", processText, c.process()},
		{"On a Cluster", clusterText, c.cluster()},
		{"10,000, 100,000 and a million locks a second", sizesText, broken},
		{"How far the prediction is off", checkText, c.check()},
	} {
		fmt.Fprintf(&b, "### %s\n\n%s\n\n%s\n", part.head, part.text, part.table)
	}
	return b.String() + c.verdict(), nil
}

// core is the table of what one server does.
func (c Costs) core() string {
	rows := [][]string{{
		"operation", "commands", "µs in pipelines", "µs on a busy server", "µs at 60%", "operations/s at 60%",
		"in pipelines", "bytes in, out", "client µs",
	}}
	for _, w := range works() {
		o := c.Operations[w.name]
		rows = append(rows, row(operationName(w.name), o))
	}
	rows = append(rows, row("renewal", c.Renewal))
	return report.Table(rows)
}

func row(name string, o Operation) []string {
	var load Load
	load.Add(o, 1)
	most := load.capacity(advised)
	return []string{
		name, number(math.Round(o.Commands)), number(o.Batched), number(o.Warm), number(advised * second / most), number(most),
		number(advised * second / o.Batched), number(math.Round(o.In)) + ", " + number(math.Round(o.Out)), number(o.Client),
	}
}

func operationName(name string) string {
	if name == onceName {
		return "`Once`: begin, complete"
	}
	return "`" + name + "`: lock, unlock"
}

// held is the table of the memory of the server.
func (c Costs) held() string {
	rows := [][]string{{"what", "bytes", "in one GB"}}
	add := func(name string, bytes float64) {
		rows = append(rows, []string{name, number(math.Round(bytes)), number(1e9 / bytes)})
	}
	for _, s := range strategies() {
		add("a lease of `"+s.name+"`", c.Memory.Held[s.name])
	}
	add("a record of `Once` without a value", c.Memory.Record)
	add("a record with a value of 1,000 bytes", c.Memory.Record+1000)
	add(fmt.Sprintf("the mark of a released `Once`, for %d s; of a release, for %d s, if the TTL is below 6 s",
		onceMarkSeconds, markSeconds), c.Memory.Mark)
	add("a connection", c.Processes.Memory)
	var load Load
	load.Add(c.Renewal, 1)
	leases := load.capacity(advised) * (ttl / renewalsPerTTL).Seconds()
	return report.Table(rows) + fmt.Sprintf("\nA core at 60%% renews %s leases with a TTL of %.0f s, or %s in pipelines of %.0f.\n",
		number(leases), ttl.Seconds(), number(advised*second/c.Renewal.Batched*(ttl/renewalsPerTTL).Seconds()), c.Renewal.PerRead)
}

// hot is the table of one contested name.
func (c Costs) hot() string {
	rows := [][]string{{"strategy", "processes", "callers of each", "hand-overs/s", "commands each", "server µs each"}}
	for _, h := range c.HandOvers {
		rows = append(rows, []string{
			"`" + h.Strategy + "`", fmt.Sprint(h.Processes), fmt.Sprint(h.Callers), number(h.PerSecond), number(h.Commands), number(h.CPU),
		})
	}
	return report.Table(rows)
}

// process is the table of what clients do by themselves.
func (c Costs) process() string {
	rows := [][]string{{"each process", "connections", "commands/s", "server µs a second", "client µs a second", "server cores of 1,000"}}
	for _, s := range c.Processes.States {
		rows = append(rows, []string{s.Name, number(s.Connections), number(s.Commands), number(s.CPU), number(s.Client), number(1000 * s.CPU / second)})
	}
	return report.Table(rows)
}

// cluster is the table of one load on several masters.
func (c Costs) cluster() string {
	rows := [][]string{{"masters", "names", "commands each", "server µs each", "busiest master", "predicted", "off by"}}
	for _, s := range c.Clusters {
		masters, names := fmt.Sprint(s.Masters), "spread"
		if s.Masters == 0 {
			masters = "no Cluster"
		}
		if s.Tag {
			names = "one tag"
		}
		rows = append(rows, []string{
			masters, names, number(s.Commands), number(s.CPU), share100(s.Busiest), share100(s.predicted(c)),
			off(s.predicted(c), s.Busiest),
		})
	}
	return report.Table(rows)
}

// sizes is the table of what three demands take.
func (c Costs) sizes() (string, error) {
	rows := [][]string{{
		"locks/s", "processes", "commands/s", "server cores", "masters", "in pipelines", "leases", "memory MB",
		"connections of a master", "MB/s to Redis", "client cores",
	}}
	for _, locks := range []float64{1e4, 1e5, 1e6} {
		d := Demand{
			Strategy: "Mutex", Locks: locks, Hold: 200 * time.Millisecond, TTL: ttl, Processes: int(locks / 1000),
			Utilisation: advised,
		}
		p, err := c.plan(d)
		if err != nil {
			return "", err
		}
		rows = append(rows, []string{
			number(locks), number(float64(d.Processes)), number(p.Load.Commands), number(p.cores()), number(float64(p.Masters)), number(float64(p.Batched)),
			number(p.Leases), number(p.Memory / 1e6),
			number(float64(p.Connections[0])) + " to " + number(float64(p.Connections[1])), number(p.In / 1e6), number(p.Client),
		})
	}
	return report.Table(rows), nil
}

func share100(v float64) string { return fmt.Sprintf("%.0f%%", percent*v) }

// off says how much greater the prediction is than what was measured.
func off(predicted, measured float64) string {
	return fmt.Sprintf("%+.0f%%", percent*(predicted/measured-1))
}
