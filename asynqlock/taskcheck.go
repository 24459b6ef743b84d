package asynqlock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// checkTask finds what is wrong with a task and its options, which asynq keeps to itself until the task is enqueued. It
// enqueues the task with a client whose commands go nowhere: asynq has accepted the options if it gets as far as the
// script that would enqueue the task, tells of some in what it returns, and has a key for [asynq.Unique].
func checkTask(task *asynq.Task) error {
	rdb := redis.NewClient(&redis.Options{MaxRetries: -1})
	defer func() { _ = rdb.Close() }()
	seen := &scriptRecorder{}
	rdb.AddHook(seen)
	info, err := asynq.NewClientFromRedisClient(rdb).Enqueue(task)
	switch {
	case seen.args == nil || err != nil:
		return fmt.Errorf("holdfast: asynqlock: the task: %w", err)
	case info.Group != "":
		return errors.New("holdfast: asynqlock: the task has the option asynq.Group, which would make one task of several " +
			"ticks, without their IDs: remove it")
	case !info.Deadline.IsZero():
		return errors.New("holdfast: asynqlock: the task has the option asynq.Deadline, which is one instant for all ticks: " +
			"use asynq.Timeout")
	case seen.has("}:unique:"):
		return errors.New("holdfast: asynqlock: the task has the option asynq.Unique, which would refuse a tick while the task " +
			"of an earlier one waits: remove it, the task ID identifies the tick")
	}
	return nil
}

// scriptRecorder is a hook that executes nothing and keeps the arguments of the last script.
type scriptRecorder struct{ args []any }

var errNotExecuted = errors.New("not executed")

// DialHook lets no connection be made.
func (*scriptRecorder) DialHook(redis.DialHook) redis.DialHook {
	return func(context.Context, string, string) (net.Conn, error) { return nil, errNotExecuted }
}

// ProcessHook records a script and lets every command succeed, since asynq sends some before.
func (s *scriptRecorder) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		if !strings.HasPrefix(cmd.Name(), "eval") {
			return nil
		}
		s.args = cmd.Args()
		if script, ok := cmd.(*redis.Cmd); ok {
			script.SetVal(int64(1)) // enqueued
		}
		return nil
	}
}

// ProcessPipelineHook executes nothing.
func (*scriptRecorder) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(context.Context, []redis.Cmder) error { return errNotExecuted }
}

// has reports whether an argument contains a text.
func (s *scriptRecorder) has(text string) bool {
	for _, arg := range s.args {
		if arg, ok := arg.(string); ok && strings.HasPrefix(arg, "asynq:{") && strings.Contains(arg, text) {
			return true
		}
	}
	return false
}
