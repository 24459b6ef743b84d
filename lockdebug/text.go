package lockdebug

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// write writes the report as text. Names are quoted, so that a line break in one cannot pass for a line of the report.
func (r Report) write(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(table, "%d held, %d waiting, at %s\n", len(r.Held), len(r.Waiting), r.At.UTC().Format(time.RFC3339Nano))
	if len(r.Held) > 0 {
		fmt.Fprint(table, "\nHELD\tMODE\tSINCE\tVALID FOR\tTTL\tTOKEN\tOWNER\n")
	}
	for _, h := range r.Held {
		ttl := h.TTL.String()
		if !h.Renewed {
			ttl += " fixed"
		}
		fmt.Fprintf(table, "%q\t%s\t%s\t%s\t%s\t%d\t%s\n", h.Name, mode(h.Kind, h.Mode), r.ago(h.Since),
			h.ValidUntil.Sub(r.At).Round(time.Millisecond), ttl, h.Token, h.Owner)
	}
	if len(r.Waiting) > 0 {
		fmt.Fprint(table, "\nWAITING\tMODE\tSINCE\tPOSITION\tOWNER\n")
	}
	for _, c := range r.Waiting {
		fmt.Fprintf(table, "%q\t%s\t%s\t%s\t%s\n", c.Name, mode(c.Kind, c.Mode), r.ago(c.Since), position(c), c.Owner)
	}
	return table.Flush()
}

// ago returns how long before the report a time was.
func (r Report) ago(t time.Time) string { return r.At.Sub(t).Round(time.Millisecond).String() + " ago" }

// mode returns the mode of a lock, and the kind of what is no lock.
func mode(kind core.Kind, mode core.Mode) string {
	if kind == core.KindLock {
		return string(mode)
	}
	return string(kind)
}

// position returns where a call stands, and in which line.
func position(c core.Waiting) string {
	switch {
	case c.Position == 0:
		return "unknown"
	case c.InRedis:
		return fmt.Sprintf("%d in Redis", c.Position)
	}
	return fmt.Sprintf("%d in this process", c.Position)
}
