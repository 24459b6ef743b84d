package httpconformance

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

var unansweredTests = tests{
	"UnansweredWhenTheClientLeaves":   testUnansweredClient,
	"UnansweredInATimeoutHandler":     testUnansweredTimeoutHandler,
	"UnansweredWithinADeadline":       testUnansweredDeadline,
	"UnansweredWhenTheLeaseIsLost":    testUnansweredLease,
	"UnansweredButDeclared":           testUnansweredDeclared,
	"AnsweredAfterTheClientLeft":      testAnsweredTooLate,
	"ContextOverBeforeTheHandler":     testNeverRan,
	"JudgeAlwaysHasAResponse":         testJudgeHasResponse,
	"JudgeSeesTheBody":                testJudgeSeesBody,
	"TrailersAreNotLostInReplays":     testTrailers,
	"FailureWithStatus200IsNoOutcome": testFailureIn200,
}

// obedient is a handler that returns when its context ends, as Go's handlers do, and writes nothing.
func obedient(entered chan<- struct{}) http.Handler {
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-r.Context().Done()
	})
}

var policies = map[core.FailurePolicy]core.State{
	core.RetryFailures: core.StateNone, core.HoldFailures: core.StateUnknown,
}

// unanswered checks what is recorded of an obedient handler whose context ends, for all guards and policies. The server
// is around made for some time, after which it ends the context, unless end does so earlier.
func (s *suite) unanswered(
	t *testing.T, name string, around func(time.Duration, http.Handler) http.Handler, end func(leave func()),
	opts ...httplock.Option,
) {
	t.Helper()
	s.unansweredWith(t, policies, name, around, end, opts...)
}

// unansweredWith is unanswered for these policies, and what they record.
func (s *suite) unansweredWith(
	t *testing.T, policies map[core.FailurePolicy]core.State, name string, around func(time.Duration, http.Handler) http.Handler,
	end func(leave func()), opts ...httplock.Option,
) {
	t.Helper()
	for kind, build := range map[string]builder{"once": s.Once, "idempotent": s.Idempotent} {
		for policy, want := range policies {
			watch, entered := newWatch(), make(chan struct{}, 10)
			guard := must(t)(build(s.told(t, watch).locks, ByUser, unhurried(opts, core.WithFailurePolicy(policy))...))
			inner := s.Handler(Route{Path: "/orders/{id}", Guards: []Guard{guard}, Handler: obedient(entered)})
			running := false
			for limit := 100 * time.Millisecond; !running; limit *= 2 { // a busy machine may need more to begin
				site := s.serve(t, around(limit, inner))
				r := request{user: fmt.Sprint(name, kind, policy, limit), key: "k"}
				key := userKey(t, r.user)
				if kind == "idempotent" {
					key = idempotentKey(t, r.user, r.key)
				}
				ctx, leave := context.WithCancel(t.Context())
				first := site.aside(ctx, r)
				select {
				case <-entered:
					running = true
					end(leave)
					watch.ended(t, s, key, fmt.Sprintf("%s, %s with policy %d", name, kind, policy), want)
					receive(t, first, "the answer")
				case <-first:
				}
				leave()
			}
		}
	}
}

func bare(_ time.Duration, h http.Handler) http.Handler { return h }

func nothing(func()) {}

// testUnansweredClient: with HoldFailures, a client that leaves does not end the context, see testLeavesDetached.
func testUnansweredClient(t *testing.T, s *suite) {
	s.unansweredWith(t, map[core.FailurePolicy]core.State{core.RetryFailures: core.StateNone}, "client", bare, func(leave func()) { leave() })
}

// testUnansweredTimeoutHandler: the empty answer of the handler that was told to stop is not the answer.
func testUnansweredTimeoutHandler(t *testing.T, s *suite) {
	s.unanswered(t, "timeout", func(limit time.Duration, h http.Handler) http.Handler {
		return http.TimeoutHandler(h, limit, "too slow")
	}, nothing)
}

// testUnansweredDeadline: chi's Timeout does it like that.
func testUnansweredDeadline(t *testing.T, s *suite) {
	s.unanswered(t, "deadline", func(limit time.Duration, h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), limit)
			defer func() {
				cancel()
				if ctx.Err() == context.DeadlineExceeded {
					w.WriteHeader(http.StatusGatewayTimeout)
				}
			}()
			h.ServeHTTP(w, r.WithContext(ctx))
		})
	}, nothing)
}

func testUnansweredLease(t *testing.T, s *suite) {
	s.unanswered(t, "lease", bare, nothing,
		core.WithTTL(time.Second), core.WithMaxHold(100*time.Millisecond))
}

// testUnansweredDeclared: the handler's word counts, and there is no answer to replay.
func testUnansweredDeclared(t *testing.T, s *suite) {
	for state, word := range words {
		watch, entered := newWatch(), make(chan struct{}, 10)
		site := s.mount(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if err := word(r.Context()); err != nil {
				t.Error(err)
			}
			entered <- struct{}{}
			<-r.Context().Done()
		}), s.told(t, watch).idempotent(t))
		r := request{user: fmt.Sprintf("declared-%q", state), key: "k"}
		ctx, leave := context.WithCancel(t.Context())
		first := site.aside(ctx, r)
		receive(t, entered, "the run")
		leave()
		receive(t, first, "the client's error")
		watch.ended(t, s, idempotentKey(t, r.user, "k"), "declared", state)
		if state == core.StateCompleted {
			site.do(r).refused(t, http.StatusConflict, httplock.CodeAlreadyCompleted)
		}
	}
}

// testAnsweredTooLate: what a handler answers to a client that has gone is an answer, and 499 is none.
func testAnsweredTooLate(t *testing.T, s *suite) {
	for status, want := range map[int]core.State{
		http.StatusCreated: core.StateCompleted, httplock.StatusClientGone: core.StateNone,
	} {
		watch, entered := newWatch(), make(chan struct{}, 10)
		site := s.mount(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			entered <- struct{}{}
			<-r.Context().Done()
			w.WriteHeader(status)
		}), s.told(t, watch).idempotent(t))
		r := request{user: fmt.Sprint("too-late-", status), key: "k"}
		ctx, leave := context.WithCancel(t.Context())
		first := site.aside(ctx, r)
		receive(t, entered, "the run")
		leave()
		receive(t, first, "the client's error")
		watch.ended(t, s, idempotentKey(t, r.user, "k"), r.user, want)
	}
}

// testNeverRan: a client that left before the handler was called has done nothing, whatever the policy.
func testNeverRan(t *testing.T, s *suite) {
	for policy := range policies {
		runs, watch := &counter{}, newWatch()
		leave := make(chan context.CancelFunc, 1)
		begun := core.WithHooks(core.Hooks{BeginEnd: func(context.Context, core.BeginEnd) { (<-leave)() }})
		guard := must(t)(s.Once(newLocks(t, s.redis.Client(), watch.hooks(), begun), ByUser, unhurried(nil, core.WithFailurePolicy(policy))...))
		inner := s.Handler(Route{Path: "/orders/{id}", Guards: []Guard{guard}, Handler: runs})
		site := s.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithCancel(r.Context())
			leave <- cancel
			inner.ServeHTTP(w, r.WithContext(ctx))
		}))
		r := request{user: fmt.Sprint("never-ran-", policy)}
		site.do(r)
		if c := receive(t, watch.refused, "the refusal"); c.Code != httplock.CodeClientGone {
			t.Errorf("code %s, want client-gone", c.Code)
		}
		if got := record(t, s.locks, userKey(t, r.user)).State; got != core.StateNone {
			t.Errorf("the record is %q with policy %d, want none", got, policy)
		}
		runs.ran(t, 0)
	}
}

// testJudgeHasResponse: a judge need not ask for nil.
func testJudgeHasResponse(t *testing.T, s *suite) {
	all := endings()
	for _, name := range []string{"nothing", "201", "500", "panic", "abort", "goexit"} {
		seen := make(chan httplock.Handled, 1)
		judge := func(o httplock.Handled) httplock.Disposition {
			seen <- o
			return httplock.Auto
		}
		watch := newWatch()
		site := s.mount(t, chosenEnding(nil), s.told(t, watch).once(t, httplock.WithCompletion(judge)))
		r := request{user: "judge-" + name}
		site.expect(t, name, all[name], r)
		o := receive(t, seen, "the outcome of "+name)
		want := all[name].status
		if o.Response == nil || o.Response.Status != want || o.Returned != (all[name].end == nil) ||
			o.Unanswered != (name == "nothing") {
			t.Errorf("%s: outcome %+v with response %+v", name, o, o.Response)
		}
		watch.ended(t, s, userKey(t, r.user), name, s.state(all[name], core.RetryFailures, false))
	}
}

// testJudgeSeesBody: with records that have no use for it as well.
func testJudgeSeesBody(t *testing.T, s *suite) {
	for kind, build := range map[string]builder{"once": s.Once, "idempotent": s.Idempotent} {
		for _, flush := range []bool{false, true} {
			seen := make(chan string, 1)
			judge := func(o httplock.Handled) httplock.Disposition {
				seen <- string(o.Response.Body)
				return httplock.Auto
			}
			site := s.mount(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte("an "))
				if flush {
					_ = http.NewResponseController(w).Flush()
				}
				_, _ = w.Write([]byte("answer"))
			}), must(t)(build(s.locks, ByUser, unhurried(nil, httplock.WithCompletion(judge))...)))
			site.do(request{user: fmt.Sprint("judge-body-", kind, flush), key: "k"}).fresh(t, http.StatusOK, "an answer")
			if got := receive(t, seen, "the judge"); got != "an answer" {
				t.Errorf("%s, flushed %v: the judge sees %q", kind, flush, got)
			}
		}
	}
}

// testFailureIn200: a failure that the body reports is classified by the body.
func testFailureIn200(t *testing.T, s *suite) {
	judge := func(o httplock.Handled) httplock.Disposition {
		if string(o.Response.Body) == `{"errors":[{}]}` {
			return httplock.Released
		}
		return httplock.Auto
	}
	bodies := []string{`{"errors":[{}]}`, `{"data":{}}`}
	runs := 0
	site := s.mount(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(bodies[runs]))
		runs++
	}), s.idempotent(t, httplock.WithCompletion(judge)))
	r := request{user: "failure-in-200", key: "k"}
	site.do(r).fresh(t, http.StatusOK, bodies[0])
	site.do(r).fresh(t, http.StatusOK, bodies[1])
	site.do(r).replayed(t, http.StatusOK, bodies[1])
}

// testTrailers: an answer whose status is in its trailers is not replayed without them.
func testTrailers(t *testing.T, s *suite) {
	for name, declared := range map[string]bool{"declared": true, "undeclared": false} {
		site := s.mount(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			field := http.TrailerPrefix + "Grpc-Status"
			if declared {
				field = "Grpc-Status"
				w.Header().Set("Trailer", field)
			}
			_, _ = w.Write([]byte("message"))
			_ = http.NewResponseController(w).Flush()
			w.Header().Set(field, "13")
		}), s.idempotent(t))
		r := request{user: "trailers-" + name, key: "k"}
		site.do(r).fresh(t, http.StatusOK, "message")
		awaitState(t, s.locks, idempotentKey(t, r.user, "k"), core.StateCompleted)
		site.do(r).refused(t, http.StatusConflict, httplock.CodeAlreadyCompleted)
	}
}
