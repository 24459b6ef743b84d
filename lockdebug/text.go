package lockdebug

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"
)

// write writes the report as text. Names and owners are quoted, so that a line break in one cannot pass for a line of the report.
func (r report) write(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(table, "%d held, %d waiting, at %s\n", len(r.Held), len(r.Waiting), r.At.Format(time.RFC3339Nano))
	if len(r.Held) > 0 {
		fmt.Fprint(table, "\nHELD\tMODE\tFOR\tVALID FOR\tTTL\tTOKEN\tOWNER\n")
	}
	for _, h := range r.Held {
		fmt.Fprintf(table, "%s\t%s\t%v\t%v\t%s\t%d\t%q\n", quoted(h.Name), h.mode(), r.At.Sub(h.Since).Round(time.Millisecond),
			h.ValidUntil.Sub(r.At).Round(time.Millisecond), h.ttl(), h.Token, h.Owner)
	}
	if len(r.Waiting) > 0 {
		fmt.Fprint(table, "\nWAITING\tMODE\tFOR\tPOSITION\tOWNER\n")
	}
	for _, c := range r.Waiting {
		fmt.Fprintf(table, "%s\t%s\t%v\t%s\t%q\n", quoted(c.Name), c.Mode, r.At.Sub(c.Since).Round(time.Millisecond),
			c.position(), c.Owner)
	}
	return table.Flush()
}

// mostOfName is how many bytes of a name the text has, because one long name would widen all lines. JSON has all.
const mostOfName = 64

// quoted returns a name in quotes, and an ellipsis if it is cut.
func quoted(name string) string {
	if len(name) > mostOfName {
		return strconv.Quote(name[:mostOfName]) + "…"
	}
	return strconv.Quote(name)
}

// mode returns how a lease is held, with the permits of a semaphore.
func (h held) mode() string {
	if h.Permits > 1 {
		return fmt.Sprintf("%s, %d permits", h.Mode, h.Permits)
	}
	return string(h.Mode)
}

// ttl returns the TTL, and whether it is fixed.
func (h held) ttl() string {
	ttl := (time.Duration(h.TTL) * time.Millisecond).String()
	if !h.Renewed {
		ttl += ", fixed"
	}
	return ttl
}

// position returns the place of a call, and the queue in which it counts.
func (c waiting) position() string {
	switch {
	case c.Position == 0:
		return "unknown"
	case c.InRedis:
		return fmt.Sprintf("%d in Redis", c.Position)
	}
	return fmt.Sprintf("%d in this process", c.Position)
}
