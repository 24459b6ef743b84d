package fiberlock

import (
	"context"
	"errors"
	"log"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/gofiber/fiber/v3"

	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/middleware/internal/hosted"
	"github.com/holdfast-go/holdfast/middleware/internal/request"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// visit is a request at a guard. The guard is one of net/http, which holds its key for as long as its handler runs. In
// fiber a response is sent after the handlers have returned. So the guard runs on a goroutine of its own: it calls
// handOver when the chain may run, the chain runs on fiber's goroutine, and handOver returns when the response is
// complete.
type visit struct {
	c      fiber.Ctx
	values hosted.Values[fiber.Ctx] // the context of the request
	answer *answer
	may    chan struct{} // closed by handOver
	ended  chan struct{} // closed when the chain has ended, and its stream
	over   chan struct{} // closed when the guard has returned
	end    sync.Once

	// Of handOver:
	w   http.ResponseWriter
	ctx context.Context

	streams  bool // after the chain
	returned bool // the chain has returned
	finished bool // the guard has returned normally
	panicked any  // of the guard's: a judge, a hook or a codec
}

type visitKey struct{}

func visitOf(r *http.Request) *visit {
	v, _ := r.Context().Value(visitKey{}).(*visit)
	return v
}

var errEnded = errors.New("holdfast: the chain did not return")

// handler returns a guard of net/http as a handler of fiber.
func handler(guard func(http.Handler) http.Handler) fiber.Handler {
	guarded := guard(http.HandlerFunc(handOver))
	return func(c fiber.Ctx) error {
		v := &visit{
			c: c, answer: newAnswer(c), may: make(chan struct{}), ended: make(chan struct{}), over: make(chan struct{}),
		}
		r, err := requestOf(c, v)
		if err != nil {
			return fiber.ErrBadRequest
		}
		go v.guard(guarded, r)
		return v.serve()
	}
}

func (v *visit) guard(guarded http.Handler, r *http.Request) {
	defer close(v.over)
	defer func() {
		p := recover()
		switch {
		case p == nil, p == any(errEnded):
		case v.streams: // nobody is left to respond to
			log.Printf("holdfast: panic at the end of a run: %v\n%s", p, debug.Stack())
		default:
			v.panicked = p
		}
	}()
	guarded.ServeHTTP(v.answer, r)
	v.finished = true
}

// handOver is the handler behind the guard.
func handOver(w http.ResponseWriter, r *http.Request) {
	v := visitOf(r)
	v.w, v.ctx = w, r.Context()
	close(v.may)
	if <-v.ended; !v.returned {
		panic(errEnded) // so that the guard knows; the chain's own panic continues in fiber
	}
}

// serve waits for the guard, and runs the chain if it may.
func (v *visit) serve() error {
	defer func() { v.c = nil }() // fiber uses it again
	select {
	case <-v.may:
	case <-v.over: // refused, or answered by a record
		if v.wait(); v.c.Request().IsBodyStream() {
			v.c.RequestCtx().SetConnectionClose() // what is left of the body must not be taken for the next request
		}
		v.answer.send(v.c)
		return nil
	}
	if v.w == http.ResponseWriter(v.answer) { // let pass: a guard around this one may have the key
		defer v.done()
		err := v.c.Next()
		v.returned = true
		return err
	}
	if v.run(); v.streams {
		return nil
	}
	v.wait()
	if !v.answer.taken {
		v.answer.send(v.c) // in place of a chain that did not answer
	}
	return nil
}

// wait returns when the guard has, and continues with its panic.
func (v *visit) wait() {
	<-v.over
	switch {
	case v.panicked != nil:
		panic(v.panicked)
	case !v.finished:
		runtime.Goexit() // as a key function or a hook did
	}
}

// done ends the chain for the guard, and waits until that has written its record or released its lock.
func (v *visit) done() {
	v.end.Do(func() { close(v.ended) })
	<-v.over
}

// run runs the chain with the context of the guard. If the response is a stream or the connection is taken over, the
// guard waits for the end of that.
func (v *visit) run() {
	c, outer, local := v.c, v.c.Context(), v.c.Locals(seal.ContextKey)
	c.SetContext(v.ctx)
	c.Locals(seal.ContextKey, v.ctx)
	defer func() {
		c.SetContext(outer)
		c.Locals(seal.ContextKey, local)
		if !v.streams {
			v.done()
		}
	}()
	before := c.Response().StatusCode()
	err := c.Next()
	if err != nil {
		answerError(c, err)
	}
	readHeader(v.w.Header(), c)
	switch {
	case answered(c, before):
		v.answer.taken = !seal.FoundEffect(v.ctx) // else the guard responds in place of the chain
		v.streams = v.tell()
	case err != nil:
		request.HandlerFailed(v.ctx)
	}
	v.returned = true
}

// answerError answers an error as fiber does when all handlers have returned.
func answerError(c fiber.Ctx, err error) {
	if c.App().ErrorHandler(c, err) != nil {
		_ = c.SendStatus(http.StatusInternalServerError)
	}
}

// answered reports whether there is a response, by a status other than that before the handler or by a body.
func answered(c fiber.Ctx, before int) bool {
	r := c.Response()
	return r.StatusCode() != before || r.IsBodyStream() || len(r.Body()) > 0 || c.RequestCtx().Hijacked()
}

// tell writes the response to the guard's writer, for the record. What the guard sends in the end is in the response already.
func (v *visit) tell() (streams bool) {
	r := v.c.Response()
	v.w.WriteHeader(r.StatusCode())
	if !r.IsBodyStream() && !v.c.RequestCtx().Hijacked() {
		_, _ = v.w.Write(r.Body())
		return false
	}
	_, _, _ = http.NewResponseController(v.w).Hijack() // so that nothing is recorded as its body
	return v.untilStreamEnds(r) || v.untilConnectionEnds()
}

// keyFunc returns the key function for the guard.
func keyFunc(key httplock.KeyFunc) httplock.KeyFunc {
	if key == nil {
		return nil // which the guard refuses
	}
	return func(r *http.Request) (httplock.Key, error) {
		v := visitOf(r)
		if v == nil { // an operator's texts, in place of a request
			return key(r)
		}
		made, err := v.values.During(v.c, key, r)
		if r.Pattern == "" && errors.Is(err, httplock.ErrNoRoute) {
			err = errors.Join(err, errUse)
		}
		return made, err
	}
}

var errUse = errors.New("holdfast: fiber has not matched a route yet where Use has put the guard: put it at the route, app.Post(path, guard, handler)")

// RefusalHandler answers a refused request. An error that it returns is answered by fiber's ErrorHandler. If there is
// no response then, the guard answers with the problem of the conflict.
type RefusalHandler func(c fiber.Ctx, conflict *httplock.Conflict) error

// WithRefusalHandler is [httplock.WithRefusalHandler] for handlers of fiber. To have fiber's ErrorHandler answer
// refused requests as all other errors:
//
//	fiberlock.WithRefusalHandler(func(_ fiber.Ctx, conflict *httplock.Conflict) error {
//		return fiber.NewError(conflict.Status, conflict.Code)
//	})
func WithRefusalHandler(handler RefusalHandler) httplock.Option {
	if handler == nil {
		return httplock.WithRefusalHandler(nil)
	}
	return httplock.WithRefusalHandler(func(w http.ResponseWriter, r *http.Request, conflict *httplock.Conflict) {
		v := visitOf(r)
		if v == nil { // a guard of net/http
			httplock.Refuse(w, r, conflict)
			return
		}
		before := v.c.Response().StatusCode()
		if err := handler(v.c, conflict); err != nil {
			answerError(v.c, err)
		}
		if answered(v.c, before) {
			v.answer.taken = true
			w.WriteHeader(v.c.Response().StatusCode())
		}
	})
}
