package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/lab/faults/history"
)

// onceEvery is for how long all workers try the same key.
const onceEvery = 300 * time.Millisecond

// onceKey is the key of the moment. Those with an odd number must not run twice, whatever happens.
func onceKey() (key string, hold bool) {
	n := history.Now() / int64(onceEvery)
	return fmt.Sprint("once", n), n%2 == 1
}

// once runs something that must happen once.
func (w *worker) once(ctx context.Context, random *rand.Rand) {
	key, hold := onceKey()
	strategy := "once"
	opts := []core.OnceOption{core.WithRetention(5 * time.Minute)}
	if hold {
		strategy = "once held"
		opts = append(opts, core.WithFailurePolicy(core.HoldFailures))
	}
	if random.IntN(2) == 0 {
		wait := time.Millisecond + upTo(random, 200*time.Millisecond)
		opts = append(opts, core.WithWait(wait))
	}
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*w.order.TTL)
	defer cancel()
	e := history.Event{Call: w.next(), Op: "begin", Strategy: strategy, Names: []string{key}}
	call := e
	call.Kind = history.Call
	w.log.Say(call)
	attempt, err := w.locks.Once(key, opts...).Begin(wait)
	back := e
	back.Kind, back.At, back.Deadline = history.Return, history.Now(), deadlineOf(wait)
	back.Err, back.Detail = Class(err), detail(err)
	if err != nil {
		back.Text = recorded(err)
		w.log.Say(back)
		return
	}
	back.Token, back.Value, back.Until = attempt.Token(), int64(attempt.Number()), until(attempt.ValidUntil)
	w.log.Say(back)
	e.Token = attempt.Token()
	w.run(random, attempt, e, hold)
}

// run does the work and records it, or fails.
func (w *worker) run(random *rand.Rand, attempt *core.Attempt, e history.Event, hold bool) {
	time.Sleep(upTo(random, 30*time.Millisecond))
	e.Kind = history.Call
	var end func() error
	switch n := random.IntN(20); {
	case n == 0:
		e.Op, end = "release", func() error { return attempt.Release(context.Background()) }
	case n == 1 && hold:
		e.Op, end = "hold", func() error { return attempt.Hold(context.Background(), "on purpose") }
	default:
		e.Op, e.Text = "complete", fmt.Sprint(w.order.ID, " ", e.Call)
		end = func() error { return attempt.Complete(context.Background(), []byte(e.Text)) }
	}
	w.log.Say(e)
	err := end()
	e.Kind, e.Err, e.Detail = history.Return, Class(err), detail(err)
	w.log.Say(e)
}

// recorded returns the value in an error that carries one.
func recorded(err error) string {
	var done *core.CompletedError
	if !errors.As(err, &done) {
		return ""
	}
	return string(done.Record.Value)
}
