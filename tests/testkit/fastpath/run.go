package fastpath

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// outcome is what a run of a script made of a state.
type outcome struct {
	before, after string // the keys, as text that can be compared
	expanded      string // the keys after Path.Expand
	reply         string
	status        string // the first number of the reply, or "error"
}

// noReply is the text of a reply without a value.
const noReply = "none"

// runner runs one script in one database.
type runner struct {
	rdb    *redis.Client
	script *redis.Script
	expand *redis.Script
	reader *redis.Script
	long   func(any) any
	short  func(keys, args []string) ([]string, []string)
	again  any
}

func newRunner(t *testing.T, server *testkit.Server, db int, source string, p Path, fast bool) *runner {
	ctx := context.Background()
	r := &runner{
		rdb: server.Client(func(o *redis.Options) {
			// A pipeline that is sent again would run the scripts on the states that they have changed.
			o.DB, o.MaxRetries, o.ReadTimeout, o.WriteTimeout = db, -1, time.Minute, time.Minute
		}),
		script: redis.NewScript(frozenClock + source),
		expand: redis.NewScript(frozenClock + p.Expand),
		reader: redis.NewScript(frozenClock + readState),
		long:   p.Long,
	}
	if fast {
		r.short, r.again = p.Short, p.Again
	}
	for _, script := range []*redis.Script{r.script, r.expand, r.reader} {
		if err := script.Load(ctx, r.rdb).Err(); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// run makes the states, runs the script on each, and returns what became of them.
func (r *runner) run(ctx context.Context, t *testing.T, states []*State) []outcome {
	pipe := r.rdb.Pipeline()
	trials := make([]trial, len(states))
	for i, s := range states {
		trials[i] = r.send(ctx, pipe, s)
	}
	commands, _ := pipe.Exec(ctx)
	scripts := make(map[redis.Cmder]bool, len(trials))
	for _, trial := range trials {
		scripts[trial.script] = true
	}
	for _, c := range commands {
		// Only the script itself may fail. A state that cannot be made or read would compare nothing with nothing.
		err := c.Err()
		if err != nil && err != redis.Nil && !scripts[c] {
			t.Fatalf("%v: %v", c, err)
		}
		if err != nil && strings.Contains(err.Error(), "frozenClock does not know") {
			t.Fatalf("the script depends on time in a way that the test has to learn: %v", err)
		}
	}
	outcomes := make([]outcome, len(states))
	for i, trial := range trials {
		stored, o := states[i].stored(), &outcomes[i]
		o.before, o.after = describeKeys(stored, trial.before.Val()), describeKeys(stored, trial.after.Val())
		o.expanded = describeKeys(stored, trial.expanded.Val())
		o.reply, o.status = r.describeReply(trial.script)
	}
	return outcomes
}

// trial is the commands that run the script once, between looks at the keys.
type trial struct{ before, script, after, expanded *redis.Cmd }

// send appends to the pipeline what makes a state and runs the script on it.
func (r *runner) send(ctx context.Context, pipe redis.Pipeliner, s *State) (sent trial) {
	for _, command := range s.setup {
		pipe.Do(ctx, command...)
	}
	keys, texts := s.Keys, s.Args
	if r.short != nil {
		keys, texts = r.short(keys, texts)
	}
	var args []any
	for _, arg := range texts {
		args = append(args, arg)
	}
	clock := []any{strconv.FormatInt(frozenAt, 10), strconv.FormatInt(s.micros, 10)}
	refused := " " + strings.Join(s.refused, " ") + " "
	sent.before = r.reader.EvalSha(ctx, pipe, s.stored(), slices.Concat(clock, []any{"", ""})...)
	sent.script = r.script.EvalSha(ctx, pipe, keys, slices.Concat(args, clock, []any{refused, s.messages})...)
	sent.after = r.reader.EvalSha(ctx, pipe, s.stored(), slices.Concat(clock, []any{"", ""})...)
	r.expand.EvalSha(ctx, pipe, s.Keys, slices.Concat(clock, []any{"", ""})...)
	sent.expanded = r.reader.EvalSha(ctx, pipe, s.stored(), slices.Concat(clock, []any{"", ""})...)
	return sent
}

// describeKeys returns the reply of readState as text, a line for each key that exists.
func describeKeys(keys []string, reply any) string {
	var text strings.Builder
	list, _ := reply.([]any)
	for i, key := range keys {
		state := list[i].([]any)
		kind, left, content := state[0].(string), state[1].(int64), state[2]
		if kind == "none" {
			continue
		}
		if elements, ok := content.([]any); ok && kind == "hash" { // the order of its fields means nothing
			var fields []string
			for j := 0; j < len(elements); j += 2 {
				fields = append(fields, fmt.Sprintf("%v=%q", elements[j], elements[j+1]))
			}
			slices.Sort(fields)
			content = fields
		} else {
			content = fmt.Sprintf("%q", content)
		}
		fmt.Fprintf(&text, "  %s: %s %v, expires in %d ms\n", key, kind, content, left)
	}
	return text.String()
}

// place is what an error says of the script: its hash and the line. They differ between a script and its part.
var place = regexp.MustCompile(`[0-9a-f]{40}|user_script: ?\d+`)

func (r *runner) describeReply(c *redis.Cmd) (text, status string) {
	switch err := c.Err(); {
	case errors.Is(err, redis.Nil):
		return noReply, noReply
	case err != nil:
		return "error " + place.ReplaceAllString(err.Error(), "..."), "error"
	}
	reply := c.Val()
	if r.again != nil && reply == r.again {
		return noReply, noReply
	}
	if r.long != nil {
		reply = r.long(reply)
	}
	list, ok := reply.([]any)
	if !ok || len(list) == 0 {
		return fmt.Sprintf("%#v", reply), fmt.Sprint(reply)
	}
	return fmt.Sprintf("%#v", list), fmt.Sprint(list[0])
}
