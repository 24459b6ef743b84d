package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/supervise"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// onceCommand runs a command at most once for a key.
type onceCommand struct {
	Key string `arg:"" names:"records" help:"What happens once."`

	Retention duration  `default:"24h" placeholder:"TIME" help:"How long the run is remembered after its end. Defaults to ${default}."`
	Tick      string    `placeholder:"SCHEDULE" help:"Run once for each time of a schedule: an interval such as 5m, whose times are its multiples since 1970 in UTC, or a cron line such as '0 3 * * *' or 'CRON_TZ=Europe/Berlin 0 3 * * *', whose zone is otherwise that of the host. By the clock of Redis, a call is for the last of these times, or for the next one if that is less than a minute away; its time becomes a part of the key."`
	Wait      *duration `short:"w" placeholder:"SECS" help:"Wait so long for a run that is in progress. Defaults to no waiting."`
	Conflict  *int      `short:"E" name:"conflict-exit-code" placeholder:"N" help:"Exit status if a run is in progress. Defaults to 75, with --tick to 0."`
	Retry     bool      `help:"Let another run follow one that has failed or crashed. Otherwise each run counts, and one that has crashed needs resolve or forget."`
	Replay    bool      `help:"Record the output, and print it with the exit status of the first run in place of another run. Otherwise that exits with 0."`
	MaxOutput int       `default:"65536" placeholder:"BYTES" help:"How much of each output --replay records. Defaults to ${default}."`

	program `embed:""`
}

// recorded is what the record of a run has.
type recorded struct {
	Status int    `json:"status"`
	Stdout []byte `json:"stdout,omitempty"`
	Stderr []byte `json:"stderr,omitempty"`
	// Truncated is true if there was more output than was recorded.
	Truncated bool `json:"truncated,omitempty"`
}

// Run is called by the parser.
func (c *onceCommand) Run(env *environment) error {
	if c.Tick != "" {
		if _, err := parseTick(c.Tick); err != nil {
			return usageError("--tick: %s", err)
		}
	}
	if c.MaxOutput < 1 || c.MaxOutput > 16<<20 {
		return usageError("--max-output %d: 1 to 16777216 bytes are allowed", c.MaxOutput)
	}
	if c.Conflict != nil && (*c.Conflict < 0 || *c.Conflict > 255) {
		return usageError("-E %d: 0 to 255 is allowed", *c.Conflict)
	}
	return c.supervised(env, func() error { return c.keep(env) })
}

// keep begins a run, or reports on the one that there was.
func (c *onceCommand) keep(env *environment) error {
	all, err := c.clients(env)
	if err != nil {
		return err
	}
	defer all.close()
	once, attempt, err := c.begin(env, all)
	if err != nil {
		all.withdraw = true
		return c.refused(env, once, err)
	}
	return c.attempt(env, once, attempt)
}

// mostLooks is how often a call asks to which tick it belongs, if the tick changes before the run has begun.
const mostLooks = 3

// begin begins a run. A call that waits until its tick is over belongs to the next one. The once is nil if there is no key yet.
func (c *onceCommand) begin(env *environment, all *clients) (once *core.Once, attempt *core.Attempt, err error) {
	for range mostLooks {
		key, opts, invalid := c.terms(env.ctx, all)
		if invalid != nil {
			return nil, nil, errors.Join(context.Cause(env.ctx), invalid)
		}
		once = all.locks.Once(key, opts...)
		if attempt, err = once.Begin(env.ctx); !errors.Is(err, core.ErrOutsideWindow) {
			return once, attempt, err
		}
	}
	return once, attempt, err
}

// terms returns the key and the options of the run.
func (c *onceCommand) terms(ctx context.Context, all *clients) (string, []core.OnceOption, error) {
	policy := core.HoldFailures
	if c.Retry {
		policy = core.RetryFailures
	}
	opts := []core.OnceOption{
		core.WithFailurePolicy(policy), core.WithLabel(c.label()), core.WithMaxValue(2 * (c.MaxOutput + 256) * 2), core.WithWait(0),
	}
	if c.Wait != nil {
		opts = append(opts, core.WithWait(c.Wait.value()))
	}
	if c.Tick == "" {
		return c.Key, append(opts, core.WithRetention(c.Retention.value())), nil
	}
	schedule, err := parseTick(c.Tick)
	if err != nil {
		return "", nil, err
	}
	now, err := serverTime(ctx, all.redis)
	if err != nil {
		return "", nil, noTime(err)
	}
	tick, from, to := tickOf(schedule, now)
	// A record that outlives the window keeps the tick from a second run, whatever the retention that was asked for.
	retention := max(c.Retention.value(), 2*to.Sub(from))
	opts = append(opts, core.WithWindow(from, to), core.WithRetention(retention.Truncate(time.Millisecond)))
	if note := zoneNote(schedule, tick); note != "" {
		opts = append(opts, core.WithNote(note))
	}
	return tickKey(c.Key, tick), opts, nil
}

// label is what operators see of the run's place: the job, which is the key of a schedule, or otherwise the program. The key of
// other runs, and the arguments of the program, may name a customer.
func (c *onceCommand) label() string {
	label := "sh"
	switch {
	case c.Tick != "":
		label = c.Key
	case len(c.Cmd) > 0:
		label = filepath.Base(c.Cmd[0])
	}
	return strings.ToValidUTF8(label[:min(len(label), 256)], "")
}

// refused returns what the program does in place of a run.
func (c *onceCommand) refused(env *environment, once *core.Once, err error) error {
	var completed *core.CompletedError
	switch {
	case errors.As(err, &completed) && c.Replay:
		c.skipped(env, completed.Record)
		return replay(env, completed.Record)
	case errors.As(err, &completed):
		c.skipped(env, completed.Record)
		return nil
	case env.ctx.Err() != nil:
		return errors.Join(context.Cause(env.ctx), err)
	case errors.Is(err, core.ErrUnavailable): // it may be in progress too, as far as was known before the outage
		return err
	case errors.Is(err, core.ErrInProgress) && c.Conflict != nil && *c.Conflict != 0:
		return &statusError{*c.Conflict, err.Error()}
	case errors.Is(err, core.ErrInProgress) && (c.Conflict != nil || c.Tick != ""):
		return c.skippedInProgress(env, once)
	case errors.Is(err, core.ErrOutcomeUnknown):
		return &statusError{StatusLost, fmt.Sprintf("%v\nFind out, then run: holdfast resolve %[2]q, or: holdfast forget %[2]q", err, once.Key())}
	}
	return err
}

// skippedInProgress says with --verbose where the run in progress is.
func (c *onceCommand) skippedInProgress(env *environment, once *core.Once) error {
	if env.flags.Verbose {
		if record, err := once.Peek(env.ctx); err == nil {
			c.skipped(env, record)
		}
	}
	return nil
}

// skipped says with --verbose which run makes this one superfluous, where it was and when.
func (c *onceCommand) skipped(env *environment, r core.Record) {
	if !env.flags.Verbose {
		return
	}
	text := fmt.Sprintf("skipped: %q has run", r.Key)
	if r.State == core.StateRunning {
		text = fmt.Sprintf("skipped: %q is in progress", r.Key)
	}
	if at, found := strings.CutPrefix(r.Key, c.Key+"@"); found && c.Tick != "" {
		if tick, err := time.Parse(time.RFC3339, at); err == nil {
			text += ", for the tick of " + tick.Local().Format(time.RFC3339)
		}
	}
	if r.Instance != "" {
		text += ", on " + printable(r.Instance)
	}
	if !r.Began.IsZero() {
		text += ", from " + r.Began.Local().Format(time.RFC3339)
	}
	if !r.Ended.IsZero() {
		text += " to " + r.Ended.Local().Format(time.RFC3339)
	}
	var end recorded
	if json.Unmarshal(r.Value, &end) == nil {
		text += fmt.Sprintf(", with exit status %d", end.Status)
	}
	fmt.Fprintln(env.stderr, "holdfast: "+text)
}

// replay prints what a run has printed, and returns its exit status. The streams keep the errors of the writes. A record without
// a value is an operator's: the run has succeeded, and its output is not known.
func replay(env *environment, record core.Record) error {
	var r recorded
	if len(record.Value) == 0 && !record.Omitted {
		return nil
	}
	if err := json.Unmarshal(record.Value, &r); err != nil {
		return &statusError{StatusLost, fmt.Sprintf("the record of %q was not made by this command: there is no output to print", record.Key)}
	}
	_, _ = env.stdout.Write(r.Stdout)
	_, _ = env.copied.Write(r.Stderr)
	if r.Truncated {
		fmt.Fprintln(env.stderr, "holdfast: there was more output than was recorded, see --max-output")
	}
	return exitWith(r.Status)
}

// attempt runs the command and ends the attempt.
func (c *onceCommand) attempt(env *environment, once *core.Once, attempt *core.Attempt) error {
	command, err := c.command(once.Key(), attempt)
	var outcome supervise.Outcome
	output := new(output)
	if err == nil && c.Replay {
		output, err = captureOutput(env, &command, c.MaxOutput)
	}
	if err == nil {
		outcome, err = env.supervisor.Run(attempt, command, c.limits())
	}
	if err != nil { // nothing has begun
		_ = seal.AttemptOf(attempt).Withdraw(unlockContext(env))
		return cannotRun(err)
	}
	r := output.recorded()
	r.Status = outcome.ExitStatus()
	if err := c.end(env, once, attempt, outcome, r); err != nil {
		return fmt.Errorf("the command has ended with %d, but that was not recorded: %w", r.Status, err)
	}
	return exitWith(r.Status)
}

// end records how the run has ended. Only a completed run is worth waiting for: of a run that was stopped, or of a failure that
// may be retried, the expiry of the lease makes the same as the record would.
func (c *onceCommand) end(env *environment, once *core.Once, attempt *core.Attempt, outcome supervise.Outcome, r recorded) error {
	ctx := unlockContext(env)
	switch {
	case outcome.Stopped != "" && c.Retry:
		return ignoreStale(attempt.Release(ctx))
	case outcome.Stopped != "":
		return attempt.Hold(ctx, string(outcome.Stopped))
	case r.Status != 0 && c.Retry:
		if err := ignoreStale(attempt.Release(ctx)); err != nil {
			fmt.Fprintf(env.stderr, "holdfast: another run may follow only when the lease has ended: %v\n", err)
		}
		return nil
	}
	value, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return complete(env, once, attempt, value)
}

// ignoreStale returns nil if another attempt has followed: there is nothing to release then.
func ignoreStale(err error) error {
	if errors.Is(err, core.ErrStale) {
		return nil
	}
	return err
}
