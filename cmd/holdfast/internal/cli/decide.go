package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/httprecord"
)

// forgetCommand deletes a record, or completed ones by label and age.
type forgetCommand struct {
	Key   string `arg:"" optional:"" names:"records" help:"Key of the once."`
	Yes   bool   `short:"y" help:"Do not ask."`
	Force bool   `help:"Delete the record of a run that has completed, or is in progress, too. A retry runs again: beside a run in progress, until its next renewal."`

	Label     string    `placeholder:"LABEL" help:"In place of a key: all completed records of this route, job or task type that are --older-than. Their retries run again."`
	OlderThan *duration `placeholder:"TIME" help:"For --label: those that completed so long ago."`
}

// Run is called by the parser.
func (c *forgetCommand) Run(env *environment) error {
	switch {
	case c.Key == "" && c.Label != "" && c.OlderThan != nil && !c.Force:
		return c.forgetMany(env)
	case c.Key == "" || c.Label != "" || c.OlderThan != nil:
		return usageError("forget needs a key, or --label and --older-than without --force")
	}
	return decide(env, c.Key, c.Yes, decision{
		question: "Delete the record, so that another run may begin?",
		note: func(record core.Record) string {
			return c.danger(record) + fmt.Sprintf("If the work has a proof in a database (core.WithProof), look there first: forget does not delete the proof, and a run that\n"+
				"has committed is not repeated while it exists. Its key is %q.", record.ProofKey)
		},
		check: func(record core.Record) error {
			switch {
			case c.Force:
			case record.State == core.StateRunning:
				return &statusError{StatusNotAcquired, fmt.Sprintf(
					"a run of %q is in progress in the process %s, and would go on beside the next one: stop that process first and wait until "+
						"the lease has expired, or use --force", c.Key, orDash(record.Instance))}
			case record.State == core.StateCompleted:
				return &statusError{StatusNotAcquired, fmt.Sprintf(
					"%q has completed, and a retry would run again: use --force if that is meant", c.Key)}
			}
			return nil
		},
		change: func(ctx context.Context, locks *core.Client, seen core.Record) error {
			if c.Force {
				return locks.Once(c.Key).ForgetRunning(ctx, seen)
			}
			return locks.Once(c.Key).Forget(ctx, seen)
		},
	})
}

// forgetStep is how many records are deleted at a time.
const forgetStep = 500

// forgetMany deletes completed records of a label. It counts them first, for the question.
func (c *forgetCommand) forgetMany(env *environment) error {
	all, err := env.open()
	if err != nil {
		return err
	}
	defer all.close()
	before := time.Now().Add(-c.OlderThan.value())
	each := func(visit func(core.Record) error) error {
		for r, err := range all.locks.Records(env.ctx, "") {
			if err == nil && r.State == core.StateCompleted && r.Label == c.Label && r.Ended.Before(before) {
				err = visit(r.Record)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	if !c.Yes {
		count := 0
		if err := each(func(core.Record) error { count++; return nil }); err != nil {
			return err
		}
		fmt.Fprintf(env.stderr, "%d records of %q completed before %s. A retry of any of them would run again.\n",
			count, c.Label, clockTime(before))
		if err := env.confirm("Delete them?"); err != nil {
			return err
		}
	}
	deleted, step := 0, make([]core.Record, 0, forgetStep)
	flush := func() error {
		n, err := forgetAll(env.ctx, all.locks, step)
		deleted, step = deleted+n, step[:0]
		return err
	}
	err = each(func(r core.Record) error {
		if step = append(step, r); len(step) < forgetStep {
			return nil
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	fmt.Fprintf(env.stderr, "holdfast: %d records deleted\n", deleted)
	return err
}

// forgetAll deletes records that have not changed, side by side; the library makes batches of them. It returns how many it has
// deleted, and an error of one that it could not delete.
func forgetAll(ctx context.Context, locks *core.Client, records []core.Record) (deleted int, err error) {
	ends := make(chan error, len(records))
	for _, r := range records {
		go func() { ends <- locks.Once(r.Key).Forget(ctx, r) }()
	}
	for range records {
		switch failed := <-ends; {
		case failed == nil:
			deleted++
		case !errors.Is(failed, core.ErrChanged):
			err = failed
		}
	}
	return deleted, err
}

// danger returns what a retry could repeat, or run beside.
func (c *forgetCommand) danger(record core.Record) string {
	switch {
	case record.State == core.StateCompleted:
		return fmt.Sprintf("%q has completed: a retry would run again.\n", c.Key)
	case record.Instance != "":
		return fmt.Sprintf("If the process %s still lives, it may still be running the work, even after its lease has ended: look at its\n"+
			"holdfast_runs_active, or restart it first.\n", record.Instance)
	}
	return ""
}

// resolveCommand records that a run has been done.
type resolveCommand struct {
	Key   string `arg:"" names:"records" help:"Key of the once."`
	Value string `placeholder:"FILE" xor:"result" help:"Record what this file has as the result; - is standard input. Not for the record of a guard of HTTP, RPCs or messages. Defaults to no result."`
	Yes   bool   `short:"y" help:"Do not ask."`

	Response string `placeholder:"FILE" xor:"result" help:"For the record of an HTTP guard: the response that its client gets, as text; - is standard input. A status line, header fields, an empty line, the body. Not for guards that encrypt (WithCodec)."`

	Retention duration `placeholder:"TIME" default:"24h" help:"How long the record is kept; never shorter than without resolve. Defaults to 24h."`
}

// Run is called by the parser.
func (c *resolveCommand) Run(env *environment) error {
	encoded := httprecord.IsEncoded(c.Key)
	switch {
	case (c.Value != "" || c.Response != "") && encoded:
		return usageError("only the guard of %q can record a result: leave it out, or call Guard.Resolve in Go", c.Key)
	case c.Response != "" && !httprecord.IsName(c.Key):
		return usageError("--response: %q is not the record of an HTTP guard, which holdfast http-key prints: use --value", c.Key)
	case c.Value != "" && httprecord.IsName(c.Key):
		return usageError("--value: %q is the record of an HTTP guard: use --response", c.Key)
	}
	value, err := await(env.ctx, func() ([]byte, error) { return c.value(env) })
	if err != nil {
		return usageError("%s", err)
	}
	if encoded {
		fmt.Fprintln(env.stderr, "holdfast: no result is recorded. Callers of an RPC get none, and messages whose handler returns one are parked, "+
			"until Guard.Resolve in Go records it")
	}
	return decide(env, c.Key, c.Yes, decision{
		question: "Record that the run has been done?",
		check: func(record core.Record) error {
			if record.State == core.StateCompleted && (value == nil || len(record.Value) > 0) {
				return c.completedBefore()
			}
			return nil
		},
		change: func(ctx context.Context, locks *core.Client, seen core.Record) error {
			return locks.Once(c.Key, core.WithRetention(c.Retention.value())).Resolve(ctx, seen, value)
		},
	})
}

// completedBefore is the error for a record that needs no decision.
func (c *resolveCommand) completedBefore() error {
	return &statusError{StatusAbsent, fmt.Sprintf("%q was completed before: its record was not changed", c.Key)}
}

// value returns what is recorded as the result; nil for none.
func (c *resolveCommand) value(env *environment) ([]byte, error) {
	if c.Response != "" {
		return c.response(env)
	}
	switch c.Value {
	case "":
		return nil, nil
	case "-":
		return io.ReadAll(env.stdin)
	}
	return os.ReadFile(c.Value)
}

// response returns the response for the client, as guards record it.
func (c *resolveCommand) response(env *environment) ([]byte, error) {
	from := env.stdin
	if c.Response != "-" {
		file, err := os.Open(c.Response)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		from = file
	}
	response, err := httprecord.Read(from, httprecord.MaxBody)
	if err != nil {
		return nil, fmt.Errorf("--response: %w", err)
	}
	return response.Encode(), nil
}

// decision is what an operator does with a record.
type decision struct {
	question string
	// note returns what the operator has to know, whether there is a question or not. It may be nil.
	note func(core.Record) string
	// check returns why the record, which exists, cannot be changed.
	check func(core.Record) error
	// change changes it, if it is still as it was seen.
	change func(ctx context.Context, locks *core.Client, seen core.Record) error
}

// decide shows a record, asks, and changes it, unless it has changed meanwhile. Without a record there is nothing to
// decide: none is made.
func decide(env *environment, key string, yes bool, d decision) error {
	all, err := env.open()
	if err != nil {
		return err
	}
	defer all.close()
	record, err := all.locks.Once(key).Peek(env.ctx)
	if err != nil {
		return err
	}
	if record.State == core.StateNone {
		return &statusError{StatusAbsent, fmt.Sprintf("there is no record of %q", key)}
	}
	if err := d.check(record); err != nil {
		return err
	}
	if !yes {
		shown := *env
		shown.stdout = &stream{to: env.stderr}
		brief := record
		brief.Value = nil
		printRecord(&shown, brief)
	}
	if d.note != nil {
		fmt.Fprintln(env.stderr, d.note(record)) // also in a script: its log is where somebody looks
	}
	if !yes {
		if err := env.confirm(d.question); err != nil {
			return err
		}
	}
	return d.change(env.ctx, all.locks, record)
}
