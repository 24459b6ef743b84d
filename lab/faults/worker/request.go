package worker

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"sync"

	"github.com/holdfast-go/holdfast/lab/faults/history"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// requestKey is the key of a [request] in the context of its handler.
type requestKey struct{}

// request is an HTTP request as its client and its handler know it, which are in one process. While the handler runs, its
// client only waits.
type request struct {
	w      *worker
	event  history.Event // what all events about it have in common
	random *rand.Rand
	served chan struct{} // closed when its handler and its guard are done

	mu        sync.Mutex
	arrived   bool
	withdrawn bool // its client has given up before it arrived
	ran       bool // its handler was called
}

func (w *worker) request(e history.Event, random *rand.Rand) *request {
	return &request{w: w, event: e, random: random, served: make(chan struct{})}
}

func requestOf(ctx context.Context) *request { return ctx.Value(requestKey{}).(*request) }

// arrive returns false for a request that must not be handled: a second copy, or one without a client.
func (q *request) arrive() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	first := !q.arrived && !q.withdrawn
	q.arrived = true
	return first
}

// withdraw returns false if the request has arrived, and is served or will be.
func (q *request) withdraw() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.withdrawn = !q.arrived
	return q.withdrawn
}

// say tells of the request.
func (q *request) say(e history.Event) {
	e.Call, e.Strategy, e.Names = q.event.Call, q.event.Strategy, q.event.Names
	if e.Token == 0 {
		e.Token = q.event.Token
	}
	q.w.log.Say(e)
}

// codes are the reasons of refusals, by their class.
var codes = map[string]string{
	httplock.CodeLockConflict:      Held,
	httplock.CodeRequestInProgress: InProgress,
	httplock.CodeAlreadyCompleted:  Completed,
	httplock.CodeOutcomeUnknown:    OutcomeOpen,
	httplock.CodeLockUnavailable:   Unavailable,
	httplock.CodeClientGone:        Ended,
}

// class tells why the handler did not run.
func (a answer) class() (class, detail string) {
	if a.err != nil {
		return Class(a.err), ""
	}
	var problem struct{ Code string }
	_ = json.Unmarshal([]byte(a.body), &problem)
	if class, ok := codes[problem.Code]; ok {
		return class, ""
	}
	return Other, a.body[:min(len(a.body), 200)]
}
