package httpconformance

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

var endingTests = tests{
	"EndingsOfOnce":        testEndingsOfOnce,
	"EndingsOfIdempotent":  testEndingsOfIdempotent,
	"WordsWin":             testWords,
	"WordIsWrittenAtOnce":  testWordAtOnce,
	"LastWordCounts":       testLastWord,
	"CompletionJudges":     testCompletion,
	"RecoveryAnswersAlone": testRecovery,
	"WordsElsewhere":       testWordsElsewhere,
	"LocksEndWithHandlers": testExclusiveEndings,
}

// ending is a way for a handler to end.
type ending struct {
	status    int
	end       func()                    // does not return, if not nil
	write     func(http.ResponseWriter) // instead of the status alone, if not nil
	onlyHTTP1 bool
}

var unfinished = map[string]func(){
	"panic":  func() { panic("handler") },
	"abort":  func() { panic(http.ErrAbortHandler) },
	"goexit": runtime.Goexit,
}

func endings() map[string]ending {
	all := map[string]ending{
		"nothing":  {status: 200, write: func(http.ResponseWriter) {}},
		"1xx only": {status: 200, write: func(w http.ResponseWriter) { w.WriteHeader(http.StatusEarlyHints) }},
		"flush": {status: 201, write: func(w http.ResponseWriter) {
			w.WriteHeader(201)
			_ = http.NewResponseController(w).Flush()
		}},
		"flush, then failure": {status: 500, write: func(w http.ResponseWriter) {
			w.WriteHeader(500)
			_ = http.NewResponseController(w).Flush()
		}},
		"hijack": {status: 202, onlyHTTP1: true, write: takeOver},
	}
	for _, status := range []int{
		200, 201, 204, 302, 400, 401, 403, 404, 407, 408, 409, 410, 418, 421, 422, 423, 425, 429, 499, 500, 503, 599,
	} {
		all[fmt.Sprint(status)] = ending{status: status}
	}
	for name, end := range unfinished {
		all[name] = ending{end: end}
	}
	return all
}

// takeOver answers 202 on the connection itself.
func takeOver(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = io.WriteString(conn, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	_ = conn.Close()
}

// handler ends like that, after a word if there is one.
func (e ending) handler(word func(context.Context) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if word != nil {
			if err := word(r.Context()); err != nil {
				panic(err)
			}
		}
		w.Header().Set("X-Handler", "set")
		switch {
		case e.end != nil:
			_, _ = w.Write([]byte("half"))
			e.end()
		case e.write != nil:
			e.write(w)
		default:
			w.WriteHeader(e.status)
		}
	})
}

// state is what the table of the specification says of an ending.
func (s *suite) state(e ending, policy core.FailurePolicy, refusalsCount bool) core.State {
	switch {
	case e.end != nil, e.status >= 500, e.status == httplock.StatusClientGone:
		if policy == core.HoldFailures {
			return core.StateUnknown
		}
		return core.StateNone
	case e.status < 400:
		return core.StateCompleted
	}
	switch e.status {
	case 401, 403, 407, 408, 409, 421, 423, 425, 429:
		return core.StateNone
	}
	if refusalsCount {
		return core.StateCompleted
	}
	return core.StateNone
}

func testEndingsOfOnce(t *testing.T, s *suite) {
	s.endings(t, "once", s.Once, false)
}

func testEndingsOfIdempotent(t *testing.T, s *suite) {
	s.endings(t, "idempotent", s.Idempotent, true)
}

type builder func(*core.Client, Key, ...httplock.Option) (Guard, error)

func (s *suite) endings(t *testing.T, kind string, build builder, refusalsCount bool) {
	for _, policy := range []core.FailurePolicy{core.RetryFailures, core.HoldFailures} {
		watch := newWatch()
		site := s.mount(t, chosenEnding(nil), must(t)(build(s.told(t, watch).locks, ByUser, unhurried(nil,
			core.WithFailurePolicy(policy))...)))
		for name, e := range endings() {
			if e.onlyHTTP1 && (s.http2 || s.Buffers) {
				continue
			}
			r := request{user: fmt.Sprint(kind, name, policy), key: "k"}
			site.expect(t, name, e, r)
			key := userKey(t, r.user)
			if kind == "idempotent" {
				key = idempotentKey(t, r.user, r.key)
			}
			watch.ended(t, s, key, fmt.Sprintf("%s with policy %d", name, policy), s.state(e, policy, refusalsCount))
		}
	}
}

// chosenEnding ends as the request says, after a word if there is one.
func chosenEnding(word func(context.Context) error) http.Handler {
	all := endings()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all[r.Header.Get("X-Ending")].handler(word).ServeHTTP(w, r)
	})
}

// ended checks the record of the run that has just ended, and what the hook gets of it.
func (w *watch) ended(t testing.TB, s *suite, key httplock.Key, name string, want core.State) {
	t.Helper()
	f := receive(t, w.finished, "the end of "+name)
	if got := record(t, s.locks, key); got.State != want {
		t.Errorf("%s: the record is %q, want %q", name, got.State, want)
	}
	if f.KeyHash != key.Hash() || f.State != want {
		t.Errorf("%s: hook told %+v, want %q", name, f, want)
	}
	for len(w.failed) > 0 {
		if i := <-w.failed; i.Kind == core.IncidentUnrecorded {
			t.Errorf("%s: hook told %+v", name, i)
		}
	}
}

// expect sends a request and checks that the client sees the ending. It takes a new connection: on one that was used
// before Go's client sends a request with an Idempotency-Key again by itself.
func (x *site) expect(t testing.TB, name string, e ending, r request) {
	t.Helper()
	r.header = http.Header{"X-Ending": {name}}
	x.Client().CloseIdleConnections()
	x.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	a := x.do(r)
	if e.end == nil {
		a.want(t, e.status)
	} else if a.err == nil {
		t.Errorf("status %d from a handler that did not return, want a broken connection", a.status)
	}
}

var words = map[core.State]func(context.Context) error{
	core.StateCompleted: core.Complete,
	core.StateNone:      core.Release,
	core.StateUnknown:   hold,
}

// testWords: what the handler says of its run counts more than how it ends.
func testWords(t *testing.T, s *suite) {
	all := endings()
	for state, word := range words {
		for _, policy := range []core.FailurePolicy{core.RetryFailures, core.HoldFailures} {
			watch := newWatch()
			guard := s.told(t, watch).once(t, core.WithFailurePolicy(policy))
			site := s.mount(t, chosenEnding(word), guard)
			for _, name := range []string{"200", "404", "500", "panic", "abort", "goexit"} {
				user := fmt.Sprintf("word-%s-%s-%d", name, state, policy)
				site.expect(t, name, all[name], request{user: user})
				watch.ended(t, s, userKey(t, user), fmt.Sprintf("%s after %q with policy %d", name, state, policy), state)
				reason := s.redis.Client().HGet(t.Context(), s.recordKey(t, userKey(t, user).Hash()), "reason").Val()
				if state == core.StateUnknown && reason != "the handler says so" {
					t.Errorf("%s with policy %d: the reason is %q", name, policy, reason)
				}
			}
		}
	}
}

// testWordAtOnce: even if the process ended now, the word would be in Redis.
func testWordAtOnce(t *testing.T, s *suite) {
	said := make(chan error)
	leave := make(chan struct{})
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		said <- core.Complete(r.Context())
		await(t, leave)
	})
	site := s.mount(t, h, s.once(t))
	done := site.aside(t.Context(), request{user: "word-at-once"})
	if err := receive(t, said, "the word"); err != nil {
		t.Error(err)
	}
	hash := userKey(t, "word-at-once").Hash()
	outcome, err := s.redis.Client().HGet(t.Context(), s.recordKey(t, hash), "outcome_on_expiry").Result()
	if err != nil || outcome != "completed" {
		t.Errorf("the running attempt counts as %q, error %v, if it is not heard of any more", outcome, err)
	}
	close(leave)
	receive(t, done, "the answer").want(t, http.StatusOK)
}

// recordKey finds the record of a hash in Redis.
func (s *suite) recordKey(t testing.TB, hash string) string {
	t.Helper()
	keys, err := s.redis.Client().Keys(t.Context(), "*"+hash+"*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if kind, err := s.redis.Client().Type(t.Context(), key).Result(); err == nil && kind == "hash" {
			return key
		}
	}
	t.Fatalf("no record among %q", keys)
	return ""
}

func testLastWord(t *testing.T, s *suite) {
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		for _, word := range []func(context.Context) error{hold, core.Release} {
			if err := word(r.Context()); err != nil {
				t.Error(err)
			}
		}
	})
	site := s.mount(t, h, s.once(t))
	for range 2 {
		site.do(request{user: "last-word"}).want(t, http.StatusOK)
	}
}

func testCompletion(t *testing.T, s *suite) {
	judge := func(o httplock.Handled) httplock.Disposition {
		switch {
		case !o.Returned:
			return httplock.Completed
		case o.Response.Status == http.StatusAccepted:
			return httplock.Held
		}
		return httplock.Auto
	}
	for name, test := range map[string]struct {
		e    ending
		want core.State
	}{
		"panic": {ending{end: unfinished["panic"]}, core.StateCompleted},
		"202":   {ending{status: 202}, core.StateUnknown},
		"200":   {ending{status: 200}, core.StateCompleted},
		"500":   {ending{status: 500}, core.StateNone},
	} {
		watch := newWatch()
		site := s.mount(t, test.e.handler(nil), s.told(t, watch).once(t, httplock.WithCompletion(judge)))
		site.expect(t, name, test.e, request{user: "completion-" + name})
		receive(t, watch.finished, "the end")
		if got := record(t, s.locks, userKey(t, "completion-"+name)).State; got != test.want {
			t.Errorf("%s: the record is %q, want %q", name, got, test.want)
		}
	}
}

// testRecovery: what a middleware around the guard answers to a panic has nothing of the handler in it.
func testRecovery(t *testing.T, s *suite) {
	for name, guard := range map[string]Guard{"once": s.once(t), "idempotent": s.idempotent(t)} {
		inner := s.Handler(Route{
			Path: "/orders/{id}", Guards: []Guard{guard}, Handler: ending{end: unfinished["panic"]}.handler(nil),
		})
		site := s.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Outer", "set")
			defer func() {
				if p := recover(); p != "handler" {
					t.Errorf("%s: recovered %v", name, p)
				}
				http.Error(w, "sorry", http.StatusInternalServerError)
			}()
			inner.ServeHTTP(w, r)
		}))
		for range 2 { // the key is free again
			a := site.do(request{user: "recovery-" + name, key: "k"}).fresh(t, http.StatusInternalServerError, "sorry\n")
			if a.header.Get("X-Handler") != "" || a.header.Get("X-Outer") != "set" {
				t.Errorf("%s: header %v, want that of the recovery and none of the handler", name, a.header)
			}
		}
	}
}

func testWordsElsewhere(t *testing.T, s *suite) {
	site := s.mount(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		for _, word := range words {
			if err := word(r.Context()); err != core.ErrNotGuarded {
				t.Errorf("error %v behind a guard without records, want ErrNotGuarded", err)
			}
		}
	}), s.exclusive(t))
	site.do(request{user: "words-elsewhere"}).want(t, http.StatusOK)
}

func testExclusiveEndings(t *testing.T, s *suite) {
	for name, e := range map[string]ending{
		"200": {status: 200}, "panic": {end: unfinished["panic"]}, "abort": {end: unfinished["abort"]},
		"goexit": {end: unfinished["goexit"]},
	} {
		site := s.mount(t, e.handler(nil), s.exclusive(t, core.WithWait(patience)))
		for range 2 { // the second one would wait for a lock that is not released
			site.expect(t, name, e, request{user: "exclusive-" + name})
		}
	}
}

// hold is [core.Hold] with a reason.
func hold(ctx context.Context) error { return core.Hold(ctx, "the handler says so") }
