package transport

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// Answer is the reply of a server to one command, or its error.
type Answer struct {
	Reply any
	Err   error
}

// AskServer sends commands that read to one master, or to the only server if master is nil, in one pipeline: so one process answers
// them all. Each answer has an error of its own. AskServer returns soon after ctx ends, and after AnswerTimeout, whatever the
// connection does. If the slots of a Cluster may have moved, it has them read again.
//
// The pipeline runs on a goroutine of its own, which may be abandoned. Why: go-redis does not end a read when its context ends.
func (e *Executor) AskServer(ctx context.Context, master *redis.Client, commands ...[]any) ([]Answer, error) {
	rdb := piper(e.Client)
	if master != nil {
		rdb = master
	}
	done := make(chan []Answer, 1) // has room, so that an abandoned goroutine ends too
	go func() {
		answers := make([]Answer, len(commands))
		for i := range answers {
			answers[i].Err = ErrPanic // unless the pipeline returns
		}
		defer func() { done <- answers }()
		e.background.recovered(func() { askPipelined(ctx, rdb, commands, answers) })
	}()
	timer := time.NewTimer(AnswerTimeout)
	defer timer.Stop()
	select {
	case answers := <-done:
		for i, a := range answers {
			if suggestsMove(a.Err) {
				e.Nodes.RequestRefresh()
			}
			answers[i].Err = e.lasting(a.Err, nil)
		}
		return answers, nil
	case <-ctx.Done():
	case <-timer.C:
	case <-e.stop:
	}
	e.Nodes.RequestRefresh()
	return nil, ErrNotAnswered
}

// askPipelined sends commands in one pipeline, and sets their answers.
func askPipelined(ctx context.Context, rdb piper, commands [][]any, answers []Answer) {
	pipe := rdb.Pipeline()
	sent := make([]*singleTryCmd, len(commands))
	for i, args := range commands {
		sent[i] = newSingleTryCmd(args...)
		_ = pipe.Process(ctx, sent[i])
	}
	execPipeline(ctx, pipe)
	for i, c := range sent {
		answers[i].Reply, answers[i].Err = c.Result()
		answers[i].Err = readable(answers[i].Err)
	}
}

// MasterOf returns the master that owns a key's slot, as far as the client knows. It returns nil without a Cluster. Unlike
// Nodes.Master it waits until the slots have been read.
func (e *Executor) MasterOf(ctx context.Context, key string) (master *redis.Client, err error) {
	if e.Nodes.cluster == nil {
		return nil, nil
	}
	err = ErrPanic // unless the call returns
	e.background.recovered(func() { master, err = e.Nodes.cluster.MasterForKey(ctx, key) })
	return master, err
}
