package httpconformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

var eventTests = tests{
	"HooksOfTheClientAreToldOfRuns":     testEventsOfRuns,
	"HooksOfTheClientAreToldOfRefusals": testEventsOfRefusals,
	"HooksOfTheClientAreToldOfPanics":   testEventsOfPanics,
	"RefusalInsideIsNoFailureOfTheRun":  testEventsOfRefusalInside,
	"ContextOfTheHookIsTheRuns":         testContextOfHook,
	"LabelsAreNotTheClients":            testLabels,
}

// label is the label of requests to the route of [suite.mount].
const label = "POST /orders/{id}"

// testEventsOfRuns: begin and end of each run, and each replay, with place, label and key.
func testEventsOfRuns(t *testing.T, s *suite) {
	failed := errors.New("holdfast: the handler answered 500")
	for kind, test := range map[string]struct {
		attempt int
		state   core.State // of a success
	}{"exclusive": {}, "once": {1, core.StateCompleted}, "idempotent": {1, core.StateCompleted}} {
		for status, failure := range map[int]error{http.StatusCreated: nil, http.StatusBadRequest: nil, http.StatusInternalServerError: failed} {
			watch, user := newWatch(), fmt.Sprint("events-", kind, status)
			told := s.told(t, watch)
			site := s.mount(t, ending{status: status}.handler(nil), must(t)(told.builders()[kind](told.locks, ByUser, unhurried(nil, core.WithWait(patience))...)))
			r := request{user: user, key: "k"}
			site.do(r).want(t, status)
			work := core.Work{Place: "http", Label: label, KeyHash: userKey(t, user).Hash()}
			if kind == "idempotent" {
				work.KeyHash = idempotentKey(t, user, "k").Hash()
			}
			start := receive(t, watch.acquired, "the begin")
			if start.Work != work || start.Attempt != test.attempt || start.Token == 0 {
				t.Errorf("%s: told of the begin %+v", user, start)
			}
			want := core.RunEnd{Work: work, Token: start.Token, Attempt: start.Attempt, State: test.state, Err: failure}
			if status >= 500 || status >= 400 && kind == "once" {
				want.State = core.StateNone
			}
			end := receive(t, watch.finished, "the end")
			if fmt.Sprint(end.Err) != fmt.Sprint(failure) || end.Took <= 0 {
				t.Errorf("%s: told of the end %+v", user, end)
			}
			end.Err, end.Took = failure, 0
			if end != want {
				t.Errorf("%s: told of the end %+v, want %+v", user, end, want)
			}
			if kind != "idempotent" || status >= 500 {
				continue
			}
			site.do(r).want(t, status)
			replay := receive(t, watch.replayed, "the replay")
			if replay.Waited <= 0 || replay.Waited > patience {
				t.Errorf("%s: waited %v", user, replay.Waited)
			}
			replay.Waited = 0
			if replay != (core.NotRun{Work: work, Reason: core.ReasonReplayed, Attempt: 1}) {
				t.Errorf("%s: told of the replay %+v", user, replay)
			}
			if len(watch.finished) != 0 {
				t.Errorf("%s: a replay has an end", user)
			}
		}
	}
}

// testEventsOfRefusals: the code of the problem is the reason, also of a request that has no key.
func testEventsOfRefusals(t *testing.T, s *suite) {
	told := make(chan core.NotRun, 10)
	locks := newLocks(t, s.redis.Client(), core.WithHooks(core.Hooks{NotRun: func(_ context.Context, not core.NotRun) { told <- not }}))
	stage := newStage(t)
	lock := must(t)(s.Exclusive(locks.Mutex, ByUser, unhurried(nil, core.WithWait(0))...))
	site, r := s.mount(t, stage, lock), request{user: "events-refusal"}
	for code, send := range map[string]func(){
		httplock.CodeLockConflict: func() { site.do(r).want(t, http.StatusConflict) },
		httplock.CodeKeyRequired:  func() { site.do(request{}).want(t, http.StatusBadRequest) },
		httplock.CodeTooEarly: func() {
			site.do(request{user: r.user, header: http.Header{"Early-Data": {"1"}}}).want(t, http.StatusTooEarly)
		},
	} {
		var first <-chan answer
		if code == httplock.CodeLockConflict {
			first = site.enter(t, stage, r)
		}
		send()
		not := receive(t, told, "the refusal")
		var conflict *httplock.Conflict
		if not.Place != "http" || not.Label != label || not.Reason != code || !errors.As(not.Err, &conflict) || conflict.Code != code ||
			not.KeyHash != conflict.KeyHash || not.RetryAfter != conflict.RetryAfter {
			t.Errorf("%s: told %+v", code, not)
		}
		if first != nil {
			if not.KeyHash != userKey(t, r.user).Hash() || not.RetryAfter < time.Second {
				t.Errorf("%s: told %+v", code, not)
			}
			close(stage.leave)
			receive(t, first, "the answer")
		}
	}
}

// testEventsOfPanics: a run that did not return has an end all the same.
func testEventsOfPanics(t *testing.T, s *suite) {
	watch := newWatch()
	told := s.told(t, watch)
	for kind, build := range told.builders() {
		r := request{user: "events-panic-" + kind, key: "k"}
		site := s.mount(t, ending{end: unfinished["panic"]}.handler(nil), must(t)(build(told.locks, ByUser, unhurried(nil, asking)...)))
		site.broken(t, kind, r)
		start, end := receive(t, watch.acquired, "the begin"), receive(t, watch.finished, "the end")
		if !end.Panicked || end.Err != nil || end.State != core.StateNone || end.Work != start.Work || end.Label != label {
			t.Errorf("%s: told %+v after %+v", kind, end, start)
		}
	}
}

// testEventsOfRefusalInside: a guard inside that cannot ask its Redis refuses with 503, which is no failure of the handler.
func testEventsOfRefusalInside(t *testing.T, s *suite) {
	watch := newWatch()
	told := s.told(t, watch)
	inner := must(t)(s.Exclusive(offline(t).Mutex, ByUser, unhurried(nil, core.WithWait(0))...))
	for kind, build := range told.builders() {
		outer := must(t)(build(told.locks, ByUser, unhurried(nil, asking)...))
		site := s.mount(t, ending{status: http.StatusCreated}.handler(nil), outer, inner)
		site.do(request{user: "events-inside-" + kind, key: "k"}).refused(t, http.StatusServiceUnavailable, httplock.CodeLockUnavailable)
		if end := receive(t, watch.finished, "the end"); end.Err != nil || end.State != core.StateNone {
			t.Errorf("%s: told of the end %+v", kind, end)
		}
	}
}

// testContextOfHook: the handler, and the hook of the end, find what the hook of the begin has put into the context.
func testContextOfHook(t *testing.T, s *suite) {
	type mark struct{}
	ended := make(chan any, 1)
	locks := newLocks(t, s.redis.Client(), core.WithHooks(core.Hooks{
		RunStart: func(ctx context.Context, start core.RunStart) context.Context {
			return context.WithValue(ctx, mark{}, start.KeyHash)
		},
		RunEnd: func(ctx context.Context, _ core.RunEnd) { ended <- ctx.Value(mark{}) },
	}))
	for kind, build := range s.builders() {
		seen := make(chan any, 1)
		h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- r.Context().Value(mark{}) })
		user := "events-context-" + kind
		s.mount(t, h, must(t)(build(locks, ByUser, unhurried(nil, asking)...))).do(request{user: user, key: "k"})
		handler, hook := receive(t, seen, "the run"), receive(t, ended, "the end")
		if hash, _ := handler.(string); hash == "" || handler != hook {
			t.Errorf("%s: the handler found %v, the hook %v", kind, handler, hook)
		}
	}
}

// testLabels: a client that makes up methods does not make labels.
func testLabels(t *testing.T, s *suite) {
	watch := newWatch()
	site := s.mount(t, &counter{}, s.told(t, watch).exclusive(t))
	if a := site.do(request{user: "labels", method: "PURGE"}); a.status == http.StatusMethodNotAllowed || a.status >= http.StatusNotImplemented || a.status == http.StatusNotFound {
		return // the router has refused it
	}
	if got := receive(t, watch.acquired, "the begin").Label; got != "/orders/{id}" {
		t.Errorf("label %q", got)
	}
}
