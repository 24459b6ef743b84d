package worker

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/lab/faults/history"
)

// The routes of Exclusive, which share their key. The first one waits as long as a guard does by default.
const (
	pathExclusive = "/exclusive"
	pathPatient   = "/exclusive/patient"
)

// exclusiveName is the name of the key in the history.
const exclusiveName = "http"

// exclusive sends a request to a handler that runs once at a time.
func (w *worker) exclusive(ctx context.Context, random *rand.Rand) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	q := w.request(history.Event{Call: w.next(), Op: "do", Strategy: "exclusive", Names: []string{exclusiveName}}, random)
	call := history.Event{Kind: history.Call, Op: "do"}
	path := pathExclusive
	switch n := random.IntN(20); {
	case n < 3: // the client leaves
		time.AfterFunc(upTo(random, 60*time.Millisecond), cancel)
		call.Row = rowCancelled
	case n < 10:
		path = pathPatient
	}
	q.say(call)
	a := w.site.post(ctx, q, path, "")
	if q.ran {
		return // its handler has told of the rest
	}
	back := history.Event{Kind: history.Return, Op: "do"}
	back.Err, back.Detail = a.class()
	q.say(back)
}

// runExclusive is the handler.
func runExclusive(rw http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	q := requestOf(ctx)
	q.ran = true
	q.event.Token, _ = core.TokenFrom(ctx)
	q.say(history.Event{Kind: history.Return, Op: "do", At: history.Now(), Until: q.believed(ctx)})
	over := context.AfterFunc(ctx, func() {
		if c := Class(context.Cause(ctx)); c == Expired || c == Taken {
			q.say(history.Event{Kind: history.End, At: history.Now(), Err: c})
		}
	})
	defer func() {
		over()
		q.say(history.Event{Kind: history.Call, Op: "unlock"})
	}()
	for range q.random.IntN(4) {
		time.Sleep(upTo(q.random, 8*time.Millisecond))
		if at := history.Now(); q.looks(ctx, at) {
			q.w.write(q.event.Call, exclusiveName, q.event.Token, false)
		}
		q.w.write(q.event.Call, exclusiveName, q.event.Token, true)
	}
	switch n := q.random.IntN(100); {
	case n < 3:
		time.Sleep(q.w.order.TTL) // long enough for some renewals
		q.looks(ctx, history.Now())
	case n < 6:
		panic("on purpose")
	}
	rw.WriteHeader(http.StatusNoContent)
}

// looks is what a careful handler does before it writes.
func (q *request) looks(ctx context.Context, at int64) bool {
	end := q.believed(ctx)
	if at >= end {
		return false
	}
	q.say(history.Event{Kind: history.Valid, At: at, Until: end})
	return true
}

// believed returns until when the lease of the request is certain, 0 if it is not. The context does not have that time,
// but the list of what the process holds has it. See [until] for why it reads the clock first.
func (q *request) believed(ctx context.Context) int64 {
	now := history.Now()
	for _, held := range q.w.held() {
		if held.Token == q.event.Token && strings.HasPrefix(held.Name, "http:") && ctx.Err() == nil {
			return now + int64(time.Until(held.ValidUntil))
		}
	}
	return 0
}

// held returns what the process holds.
func (w *worker) held() []core.Held {
	if w.redlock != nil {
		return w.redlock.Held()
	}
	return w.locks.Held()
}

// released tells that the guard has let go. Whether it has reached Redis is not known.
func (q *request) released() {
	if q.ran && q.event.Op == "do" {
		q.say(history.Event{Kind: history.Return, Op: "unlock"})
	}
}
