package cli

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// recordsCommand lists the records of once.
type recordsCommand struct {
	Prefix string `arg:"" optional:"" name:"begin" help:"List only keys that begin so."`
	State  string `placeholder:"STATE" help:"List only records of this state: running, abandoned, unknown or completed."`
}

// Run is called by the parser.
func (c *recordsCommand) Run(env *environment) error {
	all, err := env.open()
	if err != nil {
		return err
	}
	defer all.close()
	t := &table{head: []string{"KEY", "STATE", "ATTEMPT", "BEGAN", "KEPT FOR", "SIZE", "NOTE", "REASON"}}
	seen := make(map[string]bool)
	for r, err := range all.locks.AllRecords(env.ctx, c.Prefix) {
		if err != nil {
			return err
		}
		if seen[r.Key] || c.State != "" && stateOf(r.Record) != c.State {
			continue
		}
		seen[r.Key] = true
		if env.flags.JSON {
			if err := env.printJSON(recordInJSON(r.Record, r.Size)); err != nil {
				return err
			}
		}
		t.add(r.Key, stateOf(r.Record), strconv.Itoa(r.Attempt), age(r.Began), short(r.Retention), strconv.Itoa(r.Size), r.Note, r.Reason)
	}
	if !env.flags.JSON {
		t.print(env)
	}
	return nil
}

// printRecord prints a record, and at most a line of its value.
func printRecord(env *environment, r core.Record) {
	t := &table{head: []string{"RECORD", "ATTEMPT", "TOKEN", "BEGAN", "KEPT FOR", "NOTE", "REASON"}}
	t.add(stateOf(r), strconv.Itoa(r.Attempt), strconv.FormatInt(r.Token, 10), age(r.Began), short(r.Retention), r.Note, r.Reason)
	t.print(env)
	if len(r.Value) > 0 {
		v := &table{head: []string{fmt.Sprintf("VALUE, %d bytes", len(r.Value))}}
		v.add(string(r.Value[:min(len(r.Value), 1000)]))
		v.print(env)
	}
}

// forgetCommand deletes a record.
type forgetCommand struct {
	Key string `arg:"" help:"Key of the once."`
	Yes bool   `short:"y" help:"Do not ask."`
}

// Run is called by the parser.
func (c *forgetCommand) Run(env *environment) error {
	return decide(env, c.Key, c.Yes, "Delete the record, so that another run may begin?", func(locks *core.Client, _ core.Record) error {
		return locks.Once(c.Key).Forget(env.ctx)
	})
}

// resolveCommand records that a run has been done.
type resolveCommand struct {
	Key   string `arg:"" help:"Key of the once."`
	Value string `placeholder:"FILE" help:"Record what this file has as the result; - is standard input. Defaults to the record of a run of holdfast once that has succeeded without output."`
	Yes   bool   `short:"y" help:"Do not ask."`

	Retention *duration `placeholder:"TIME" help:"How long the record is kept, at least as long as without resolve. Defaults to that, or to 24h if it is shorter."`
}

// Run is called by the parser.
func (c *resolveCommand) Run(env *environment) error {
	value := []byte(`{"status":0}`)
	var err error
	switch c.Value {
	case "":
	case "-":
		value, err = io.ReadAll(env.stdin)
	default:
		value, err = os.ReadFile(c.Value)
	}
	if err != nil {
		return usageError("%s", err)
	}
	return decide(env, c.Key, c.Yes, "Record that the run has been done?", func(locks *core.Client, r core.Record) error {
		retention, err := c.retention(r)
		if err != nil {
			return err
		}
		return locks.Once(c.Key, core.WithRetention(retention)).Resolve(env.ctx, value)
	})
}

// The retention of a resolved record by default, and the longest that core allows.
const (
	defaultRetention = 24 * time.Hour
	mostRetention    = 10 * 365 * 24 * time.Hour
)

// retention returns how long the record is kept. It never shortens that: the record protects against a second run.
func (c *resolveCommand) retention(r core.Record) (time.Duration, error) {
	left := r.Retention
	if left < 0 { // Redis would keep it for ever
		left = mostRetention
	}
	switch {
	case c.Retention == nil:
		return max(left, defaultRetention), nil
	case c.Retention.value() < left:
		return 0, usageError("--retention %v: the record is kept for %v without resolve, and must not be kept for a shorter time",
			c.Retention.value(), left.Round(time.Second))
	}
	return c.Retention.value(), nil
}

// decide shows a record, asks, and changes it. change gets the record as it was before the question.
func decide(env *environment, key string, yes bool, question string, change func(*core.Client, core.Record) error) error {
	all, err := env.open()
	if err != nil {
		return err
	}
	defer all.close()
	record, err := all.locks.Once(key).Peek(env.ctx)
	if err != nil {
		return err
	}
	if !yes {
		record.Value = nil
		shown := *env
		shown.stdout = env.stderr
		printRecord(&shown, record)
		if err := env.confirm(question); err != nil {
			return err
		}
	}
	return change(all.locks, record)
}
