package worker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/lab/faults/history"
)

// The routes of Idempotent. The second one holds failures.
const (
	pathIdempotent = "/idempotent"
	pathHeld       = "/idempotent/held"
)

// idempotent sends a request with the key of the moment, which all processes send.
func (w *worker) idempotent(ctx context.Context, random *rand.Rand) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	key, hold := onceKey()
	key = "http-" + key
	strategy, path := "idempotent", pathIdempotent
	if hold {
		strategy, path = "idempotent held", pathHeld
	}
	q := w.request(history.Event{Call: w.next(), Op: "begin", Strategy: strategy, Names: []string{key}}, random)
	call := history.Event{Kind: history.Call, Op: "begin"}
	if random.IntN(6) == 0 { // the client leaves
		time.AfterFunc(upTo(random, 60*time.Millisecond), cancel)
		call.Row = rowCancelled
	}
	q.say(call)
	a := w.site.post(ctx, q, path, key)
	if q.ran {
		return // its handler has told of the rest
	}
	back := history.Event{Kind: history.Return, Op: "begin"}
	if a.err == nil && a.status == http.StatusCreated {
		back.Err, back.Text = Completed, a.body
	} else {
		back.Err, back.Detail = a.class()
	}
	q.say(back)
}

// runIdempotent is the handler. It does the work and answers, or fails.
func runIdempotent(rw http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	q := requestOf(ctx)
	q.ran = true
	q.event.Token, _ = core.TokenFrom(ctx)
	back := history.Event{Kind: history.Return, Op: "begin"}
	if attempt, ok := core.AttemptFrom(ctx); ok {
		back.Value = int64(attempt.Number())
	}
	q.say(back)
	time.Sleep(upTo(q.random, 30*time.Millisecond))
	hold := q.event.Strategy == "idempotent held"
	n := q.random.IntN(20)
	if n < 2 && !hold || n == 2 && hold {
		q.say(history.Event{Kind: history.Call, Op: "release"})
	}
	switch {
	case n == 0:
		panic("on purpose") // released, or held
	case n == 1:
		rw.WriteHeader(http.StatusInternalServerError) // the same
	case n == 2 && hold:
		_ = core.Release(ctx)
		rw.WriteHeader(http.StatusServiceUnavailable)
	default:
		q.event.Text = fmt.Sprint(q.w.order.ID, " ", q.event.Call)
		q.say(history.Event{Kind: history.Call, Op: "complete", Text: q.event.Text})
		rw.WriteHeader(http.StatusCreated)
		fmt.Fprint(rw, q.event.Text)
	}
}

// finished is the hook for the completion of an attempt. It tells which answer of a request has been recorded.
func finished(ctx context.Context, f core.AttemptEnd) {
	if q, ok := ctx.Value(requestKey{}).(*request); ok && f.State == core.StateCompleted {
		q.say(history.Event{
			Kind: history.Return, Op: "complete", Text: q.event.Text, Err: Class(f.Err), Detail: detail(f.Err),
		})
	}
}
