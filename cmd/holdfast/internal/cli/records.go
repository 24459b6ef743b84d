package cli

import (
	"fmt"
	"io"
	"os"
	"strconv"

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
	return decide(env, c.Key, c.Yes, "Delete the record, so that another run may begin?", func(once *core.Once) error {
		return once.Forget(env.ctx)
	})
}

// resolveCommand records that a run has been done.
type resolveCommand struct {
	Key   string `arg:"" help:"Key of the once."`
	Value string `placeholder:"FILE" help:"Record what this file has as the result; - is standard input. Defaults to the record of a run of holdfast once that has succeeded without output."`
	Yes   bool   `short:"y" help:"Do not ask."`

	Retention duration `default:"24h" placeholder:"TIME" help:"How long the record is kept."`
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
	return decide(env, c.Key, c.Yes, "Record that the run has been done?", func(once *core.Once) error {
		return once.Resolve(env.ctx, value)
	}, core.WithRetention(c.Retention.value()))
}

// decide shows a record, asks, and changes it.
func decide(env *environment, key string, yes bool, question string, change func(*core.Once) error, opts ...core.OnceOption) error {
	all, err := env.open()
	if err != nil {
		return err
	}
	defer all.close()
	once := all.locks.Once(key, opts...)
	if !yes {
		record, err := once.Peek(env.ctx)
		if err != nil {
			return err
		}
		record.Value = nil
		shown := *env
		shown.stdout = env.stderr
		printRecord(&shown, record)
		if err := env.confirm(question); err != nil {
			return err
		}
	}
	return change(once)
}
