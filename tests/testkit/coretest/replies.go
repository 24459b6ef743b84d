package coretest

import (
	"context"
	"encoding"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// ErrorReply is an error as a server sends it.
type ErrorReply string

func (r ErrorReply) Error() string { return string(r) }

func (ErrorReply) RedisError() {}

// failingScripts is a hook that fails each script with an error, as often as left says. It counts them.
type failingScripts struct {
	err        error
	Sent, Left atomic.Int64
}

// FailScripts adds a hook to rdb that fails so many scripts.
func FailScripts(rdb *redis.Client, err error, n int64) *failingScripts {
	f := &failingScripts{err: err}
	f.Left.Store(n)
	rdb.AddHook(f)
	return f
}

func (f *failingScripts) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *failingScripts) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !strings.HasPrefix(cmd.Name(), "eval") {
			return next(ctx, cmd)
		}
		f.Sent.Add(1)
		if f.Left.Add(-1) < 0 {
			return next(ctx, cmd)
		}
		for _, arg := range cmd.Args() {
			if written, ok := arg.(encoding.BinaryMarshaler); ok {
				_, _ = written.MarshalBinary() // as go-redis does when it writes the command
			}
		}
		cmd.SetErr(f.err)
		return f.err
	}
}

func (f *failingScripts) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		single := f.ProcessHook(func(context.Context, redis.Cmder) error { return nil })
		for _, cmd := range cmds {
			if err := single(ctx, cmd); err != nil {
				return err
			}
		}
		return next(ctx, cmds)
	}
}

// Always is more often than any test sends a script.
const Always = int64(1) << 40

// Answering is a hook that answers scripts in place of Redis if Answer returns something.
type Answering struct {
	Answer func(cmd string) (reply any, err error)
}

func (a Answering) DialHook(next redis.DialHook) redis.DialHook { return next }

func (a Answering) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if a.answers(cmd) {
			return cmd.Err()
		}
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook answers the scripts of a pipeline too: what is repeated in the background may share one with a call.
func (a Answering) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		rest := slices.DeleteFunc(slices.Clone(cmds), a.answers)
		if len(rest) == 0 {
			return nil
		}
		return next(ctx, rest)
	}
}

// answers answers a command, and returns true, if it is a script that has an answer.
func (a Answering) answers(cmd redis.Cmder) bool {
	script, ok := cmd.(interface{ SetVal(any) })
	if !ok || !strings.HasPrefix(cmd.Name(), "eval") {
		return false
	}
	reply, err := a.Answer(cmd.Name())
	if err != nil {
		cmd.SetErr(err)
	} else if reply != nil {
		script.SetVal(reply)
	}
	return err != nil || reply != nil
}

// Witness counts the scripts, and waits for replicas, that a hook of the user's client sees.
type Witness struct{ Seen atomic.Int64 }

func (w *Witness) see(cmds ...redis.Cmder) {
	for _, cmd := range cmds {
		if name := cmd.Name(); name == "evalsha" || name == "wait" {
			w.Seen.Add(1)
		}
	}
}

func (w *Witness) DialHook(next redis.DialHook) redis.DialHook { return next }

func (w *Witness) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		w.see(cmd)
		return next(ctx, cmd)
	}
}

func (w *Witness) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		w.see(cmds...)
		return next(ctx, cmds)
	}
}
