package httpguard

import (
	"context"
	"errors"
	"log"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/middleware/internal/writer"
)

// lateGrace is how long a late answer may still begin or go on after the context of its request has ended. Why: the
// server cancels that context when the outermost handler has returned, but a timeout around the guard cancels its own
// before the error handler around it answers.
const lateGrace = 100 * time.Millisecond

// errLate tells of an answer that its record does not know.
var errLate = errors.New("holdfast: answered after the run was recorded without an answer: see LateAnswers")

// FinishLate is [Run.Finish] for adapters whose writer stays in use after the guard has returned. ctx is the context
// of the request as it came to the guard, and c captures the answer.
//
// Why: Echo's handlers return errors. Echo's error handler answers them after all middlewares have returned, through
// the writer that the guard gave to the handler. So if nothing is written yet, the run stays open, and other requests
// of the key find it in progress. A late answer is passed through as it is written. If the answer is no completion,
// the run ends before the status is sent. Any other answer is recorded when the request has ended. If nothing was written
// through the capture by then, the handler has not answered, and the failure policy decides. The error handler may have
// answered around the capture, or panicked: so silence says nothing of what became of the run.
//
// FinishLate waits only if the writer that came to the guard is Echo's, or if the config says so. Other runs are
// judged at once, so that a client that has read an answer finds it recorded. Without a server of net/http, which ends
// the context of each request, FinishLate cannot wait for a late answer. Then the handler counts as one that did not
// answer.
//
// FinishLate returns nil if it waits, or if the writer is such a one: the error handler is going to answer.
func (r *Run) FinishLate(ctx context.Context, c *Capture, o Outcome) (instead *Conflict) {
	if !o.Unanswered {
		return r.Finish(o)
	}
	l := &lateAnswer{run: r, capture: c, server: serverOf(ctx), answer: c.Response()}
	c.late = l
	awaits := r.awaitsAnswer(c)
	if !awaits || l.server == nil || ctx.Done() == nil {
		if awaits {
			o.Response = &Response{}
		}
		l.ended, l.empty = true, r.ctx.Err() == nil
		if instead = r.Finish(o); r.mayAnswerLate(c) {
			return nil
		}
		return instead
	}
	r.late = true
	l.mu.Lock()
	defer l.mu.Unlock()
	l.detach = context.AfterFunc(ctx, l.requestEnded)
	return nil
}

// awaitsAnswer reports whether the handler may still be answered for.
func (r *Run) awaitsAnswer(c *Capture) bool {
	word := r.said()
	return r.mayAnswerLate(c) && r.ctx.Err() == nil &&
		(word == Auto || word == Completed) && r.refusal.Load() == notRefused
}

// mayAnswerLate reports whether something may write an answer after the guard has returned.
func (r *Run) mayAnswerLate(c *Capture) bool {
	return r.once.config.LateAnswers || answersLate(c.real)
}

// lateAnswer is the answer of a run whose handler has returned without one. The handler's goroutine writes it, and a
// timer ends it.
type lateAnswer struct {
	run     *Run
	capture *Capture
	server  *http.Server
	detach  func() bool // from the context of the request; nil if the run was ended at once

	mu     sync.Mutex
	answer *Response // as of the last write: the real writer must not be touched once the request has ended
	over   bool      // the context of the request has ended
	ended  bool      // the outcome is recorded
	empty  bool      // as that of a handler that answered nothing while its context was alive
	timer  *time.Timer
	armed  int // counts timers, so that one that was stopped too late ends nothing
}

// enter locks the answer for a write. The caller must call leave.
func (l *lateAnswer) enter() {
	l.mu.Lock()
	l.disarmLocked()
}

func (l *lateAnswer) leave() {
	if !l.ended {
		l.answer = l.capture.Response()
	}
	l.armLocked()
	l.mu.Unlock()
}

func (l *lateAnswer) disarmLocked() {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	l.armed++
}

func (l *lateAnswer) armLocked() {
	if l.over && !l.ended {
		armed := l.armed
		l.timer = time.AfterFunc(lateGrace, func() { l.end(armed) })
	}
}

func (l *lateAnswer) requestEnded() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	l.disarmLocked()
	l.armLocked()
}

// answeredLocked judges an answer by its status and header, before they are sent. What is completed is recorded with its
// body; a judge of the application's sees the body, too.
func (l *lateAnswer) answeredLocked() {
	r := l.run
	if l.ended && l.empty {
		r.once.incident(context.WithoutCancel(r.ctx), r.work(), incidentAnsweredLate, errLate)
	}
	if l.ended {
		return
	}
	o := Outcome{Returned: true, Response: l.capture.Response()}
	if r.said() == Auto && r.once.config.Completion == nil && r.once.config.disposition(o, r.policy()) != Completed {
		l.finishLocked(o)
	}
}

func (l *lateAnswer) finishLocked(o Outcome) {
	l.ended = true
	l.detach()
	l.run.Finish(o)
}

// end records what there is once the request has ended. A panic of the application's would end the process here, and is
// logged as net/http logs one of a handler.
func (l *lateAnswer) end(armed int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended || armed != l.armed {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			logf := log.Printf
			if l.server.ErrorLog != nil {
				logf = l.server.ErrorLog.Printf
			}
			logf("holdfast: panic at the end of a run: %v\n%s", p, debug.Stack())
		}
	}()
	o := Outcome{Returned: true, Unanswered: !l.capture.Wrote(), Response: l.answer}
	if o.Unanswered {
		o.Response = &Response{}
	}
	l.finishLocked(o)
}

// serverOf returns the server of a request, nil if there is none.
func serverOf(ctx context.Context) *http.Server {
	srv, _ := ctx.Value(http.ServerContextKey).(*http.Server)
	return srv
}

// echoResponse is what tells Echo's writer from others: functions to call around the write of the header.
type echoResponse interface {
	Before(fn func())
	After(fn func())
}

// answersLate reports whether w, or a writer that it wraps, is Echo's. It looks through captures of guards around this
// one, which do not unwrap for others.
func answersLate(w http.ResponseWriter) bool {
	for {
		if captured, ok := writer.Behind(w).(interface{ Captured() *Capture }); ok {
			w = captured.Captured().real
			continue
		}
		switch outer := w.(type) {
		case echoResponse:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = outer.Unwrap()
		default:
			return false
		}
	}
}
