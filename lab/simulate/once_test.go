//go:build holdfast_simulation

package simulate_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/lab/faults/history"
	"github.com/holdfast-go/holdfast/lab/faults/worker"
)

// class is the class of package worker, for what matters here.
func class(err error) string {
	if err == nil {
		return ""
	}
	return worker.Class(err)
}

// once runs something that must happen once. All clients try the same key for a minute.
func (c *client) once() {
	n := now() / int64(time.Minute)
	e := history.Event{By: c.name, Call: c.next(), Op: "begin", Strategy: "once", Names: []string{fmt.Sprint("once", n)}}
	var opts []core.OnceOption
	if n%2 == 1 {
		e.Strategy = "once held"
		opts = append(opts, core.WithFailurePolicy(core.HoldFailures))
	}
	ctx, cancel := context.WithTimeout(context.Background(), ttl)
	defer cancel()
	c.call(e)
	attempt, err := c.locks.Once(e.Names[0], opts...).Begin(ctx)
	back := e
	back.Kind, back.Err = history.Return, class(err)
	var done *core.CompletedError
	if errors.As(err, &done) {
		back.Text = string(done.Record.Value)
	}
	if err != nil {
		c.say(back)
		return
	}
	back.Token = attempt.Token()
	c.say(back)
	time.Sleep(c.upTo(20 * time.Second))
	e.Op, e.Token, e.Text = "complete", attempt.Token(), fmt.Sprint(c.name, " ", e.Call)
	c.call(e)
	e.Kind, e.Err = history.Return, class(attempt.Complete(context.Background(), []byte(e.Text)))
	c.say(e)
}
