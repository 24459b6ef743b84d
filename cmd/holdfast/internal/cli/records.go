package cli

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/core"
)

// recordsCommand lists the records of once.
type recordsCommand struct {
	Prefix string `arg:"" optional:"" name:"begin" names:"records" help:"List only keys that begin so."`
	State  string `enum:",running,abandoned,unknown,completed" default:"" placeholder:"STATE" help:"List only records of this state: running, abandoned, unknown or completed."`
}

// Run is called by the parser. The records are listed as they are found.
func (c *recordsCommand) Run(env *environment) error {
	all, err := env.open()
	if err != nil {
		return err
	}
	defer all.close()
	t := &table{head: []string{"KEY", "STATE", "ATTEMPT", "BEGAN", "KEPT FOR", "SIZE", "PROCESS", "LABEL", "NOTE", "REASON"}}
	seen := make(map[string]bool)
	for r, err := range all.locks.Records(env.ctx, c.Prefix) {
		if err != nil {
			return err
		}
		if seen[r.Key] || c.State != "" && string(r.State) != c.State {
			continue
		}
		seen[r.Key] = true
		if env.flags.JSON {
			if err := env.printJSON(recordInJSON(r.Record, r.Size)); err != nil {
				return err
			}
		}
		t.add(named(r.Key), stateOf(r.Record), strconv.Itoa(r.Attempt), age(r.Began), short(r.Retention), strconv.Itoa(r.Size),
			orDash(r.Instance), orDash(r.Label), orDash(r.Note), r.Reason)
	}
	if !env.flags.JSON {
		t.print(env)
	}
	all.report(env, len(seen) > 0, nothing(fmt.Sprintf("no %s exists", strings.TrimSpace(c.State+" record")), "key", c.Prefix))
	return nil
}

// orDash returns a text, "-" if there is none.
func orDash(text string) string { return cmp.Or(text, "-") }

// printRecord prints a record, and at most a line of its value.
func printRecord(env *environment, r core.Record) {
	t := &table{head: []string{"RECORD", "ATTEMPT", "TOKEN", "BEGAN", "LEASE", "KEPT FOR", "PROCESS", "LABEL", "NOTE", "REASON"}}
	lease := "-"
	if r.State == core.StateRunning {
		lease = short(r.Lease)
	}
	t.add(stateOf(r), strconv.Itoa(r.Attempt), strconv.FormatInt(r.Token, 10), since(r.Began), lease, short(r.Retention),
		orDash(r.Instance), orDash(r.Label), orDash(r.Note), r.Reason)
	t.print(env)
	if len(r.Value) > 0 {
		v := &table{head: []string{fmt.Sprintf("VALUE, %d bytes", len(r.Value))}}
		v.add(string(r.Value[:min(len(r.Value), 1000)]))
		v.print(env)
	}
}
