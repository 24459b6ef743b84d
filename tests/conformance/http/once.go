package httpconformance

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

var onceTests = tests{
	"OnceRefusesAfterSuccess":  testSecondRequest,
	"OnceReplaysIfAsked":       testOnceReplays,
	"OnceReplaysPerRoute":      testOnceReplaysPerRoute,
	"OnceRunsAgainAfterForget": testForget,
	"AttemptsAndTokensGrow":    testAttempts,
	"IdempotentReplays":        testIdempotent,
	"ProofAnswers":             testProof,
	"RetentionEnds":            testRetention,
}

// testThreeInstances: one order per user, however many instances and clicks. The runs do not end before all others
// have been refused, so that the refusals are for a run in progress.
func testThreeInstances(t *testing.T, s *suite) {
	const instances, users = 3, 5
	requests := testkit.Rounds(200, 1000)
	stage := newStage(t)
	var sites []*site
	for range instances {
		locks := newLocks(t, s.redis.Client())
		site := s.mount(t, stage, must(t)(s.Once(locks, ByRoute, httplock.WithAskTimeout(patience))))
		site.do(request{path: "/nowhere"}).want(t, http.StatusNotFound) // so that HTTP/2 has its connection
		sites = append(sites, site)
	}
	began, answers := time.Now(), make(chan answer, requests)
	for i := range requests {
		go func() { answers <- sites[i%instances].do(request{user: fmt.Sprint("three-", i%users), body: "order"}) }()
	}
	for range requests - users {
		receive(t, answers, "a refusal").refused(t, http.StatusConflict, httplock.CodeRequestInProgress)
	}
	close(stage.leave)
	for range users {
		receive(t, answers, "an answer").fresh(t, http.StatusCreated, "done")
	}
	if runs := len(stage.entered); runs != users {
		t.Errorf("%d runs, want %d", runs, users)
	}
	t.Logf("%d requests in %v: %d answered, %d refused", requests, time.Since(began), users, requests-users)
	hash := core.KeyHash((<-stage.entered).Context())
	for i := range users {
		site := sites[i%instances]
		r := request{user: fmt.Sprint("three-", i), body: "order"}
		site.do(r).refused(t, http.StatusConflict, httplock.CodeAlreadyCompleted)
	}
	once := s.locks.Once("http:" + hash)
	seen, err := once.Peek(t.Context())
	if err == nil {
		err = once.Forget(t.Context(), seen)
	}
	if err != nil {
		t.Fatal(err)
	}
	again := 0
	for i := range users {
		a := sites[i%instances].do(request{user: fmt.Sprint("three-", i), body: "order"})
		if a.err == nil && a.status == http.StatusCreated {
			again++
		}
	}
	if again != 1 {
		t.Errorf("%d users could order again, want the one whose order was forgotten", again)
	}
}

func testSecondRequest(t *testing.T, s *suite) {
	runs := &counter{}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "/orders/7")
		w.Header().Set("X-Secret", "of the first")
		runs.ServeHTTP(w, r)
	})
	site := s.mount(t, h, s.once(t))
	r := request{user: "second", body: "order"}
	site.do(r).fresh(t, http.StatusCreated, "1")
	a := site.do(r)
	p := a.refused(t, http.StatusConflict, httplock.CodeAlreadyCompleted)
	if p.Retryable || p.RetryAfter != 0 || a.header.Get("Retry-After") != "" {
		t.Errorf("problem %+v, Retry-After %q: it will not be better later", p, a.header.Get("Retry-After"))
	}
	if a.header.Get("Location") != "/orders/7" || a.header.Get("X-Secret") != "" {
		t.Errorf("header %v, want the Location of the first answer and no more of it", a.header)
	}
	site.do(request{user: "second-other", body: "order"}).fresh(t, http.StatusCreated, "2")
	runs.ran(t, 2)
}

func testOnceReplays(t *testing.T, s *suite) {
	runs := &counter{}
	watch := newWatch()
	site := s.mount(t, runs, s.told(t, watch).once(t, httplock.WithReplay()))
	r := request{user: "replay", body: "order"}
	site.do(r).fresh(t, http.StatusCreated, "1")
	a := site.do(r).replayed(t, http.StatusCreated, "1")
	if a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("header %v, want a replay that is not to be stored", a.header)
	}
	if got := receive(t, watch.replayed, "the hook"); got.KeyHash != userKey(t, "replay").Hash() || got.Attempt != 1 {
		t.Errorf("hook told %+v", got)
	}
	runs.ran(t, 1)
}

// testOnceReplaysPerRoute: a key that is the same on two routes has one effect, but the response of one route is none of the other.
func testOnceReplaysPerRoute(t *testing.T, s *suite) {
	orders, refunds := &counter{}, &counter{}
	guard := s.once(t, httplock.WithReplay())
	site := s.serve(t, s.Handler(
		Route{Path: "/orders/{id}", Guards: []Guard{guard}, Handler: orders},
		Route{Path: "/refunds/{id}", Guards: []Guard{guard}, Handler: refunds},
	))
	r := request{user: "replays-per-route"}
	site.do(r).fresh(t, http.StatusCreated, "1")
	site.do(r).replayed(t, http.StatusCreated, "1")
	other := r
	other.path = "/refunds/1"
	site.do(other).refused(t, http.StatusConflict, httplock.CodeAlreadyCompleted)
	refunds.ran(t, 0)
}

func testForget(t *testing.T, s *suite) {
	for name, secret := range map[string][]byte{"plain": nil, "keyed": []byte("sixteen bytes or more")} {
		runs, opts := &counter{}, []httplock.Option{}
		if secret != nil {
			opts = append(opts, httplock.WithKeySecret(secret))
		}
		site, user := s.mount(t, runs, s.once(t, opts...)), "forget-"+name
		site.do(request{user: user}).fresh(t, http.StatusCreated, "1")
		key := userKey(t, user)
		r, err := ledger(t, s.locks, opts...).PeekKey(t.Context(), key)
		if err != nil || r.State != core.StateCompleted {
			t.Fatalf("%s: record %+v, error %v, want it completed", name, r, err)
		}
		if !strings.HasPrefix(string(r.Value), "HTTP/1.1 201 Created\r\n") || !r.Omitted {
			t.Errorf("%s: recorded %q, want 201 without body", name, r.Value)
		}
		forget(t, s.locks, key, opts...)
		site.do(request{user: user}).fresh(t, http.StatusCreated, "2")
	}
	site := s.mount(t, &counter{}, s.idempotent(t))
	site.do(request{user: "forget", key: `"a"`}).fresh(t, http.StatusCreated, "1")
	forget(t, s.locks, idempotentKey(t, "forget", "a"))
	site.do(request{user: "forget", key: "a"}).fresh(t, http.StatusCreated, "2")
}

// testAttempts: of two runs for a key the second one has the larger number and the larger token.
func testAttempts(t *testing.T, s *suite) {
	type fact struct {
		attempt  int
		token    int64
		hash     string
		degraded bool
	}
	facts := make(chan fact, 10)
	status := []int{500, 201}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := core.TokenFrom(r.Context())
		if a, ok := core.AttemptFrom(r.Context()); !ok || a.Token() != token {
			t.Errorf("no attempt in the context of the handler: %v", ok)
		}
		f := fact{httpkit.Attempt(r.Context()), token, core.KeyHash(r.Context()), httplock.Degraded(r.Context())}
		facts <- f
		w.WriteHeader(status[min(f.attempt, 2)-1])
	})
	watch := newWatch()
	site := s.mount(t, h, s.told(t, watch).once(t))
	key := userKey(t, "attempts")
	hash := key.Hash()
	site.do(request{user: "attempts"}).want(t, http.StatusInternalServerError)
	site.do(request{user: "attempts"}).want(t, http.StatusCreated)
	forget(t, s.locks, key)
	site.do(request{user: "attempts"}).want(t, http.StatusInternalServerError)
	var last int64
	for i, attempt := range []int{1, 2, 1} {
		f := receive(t, facts, "a run")
		if f.attempt != attempt || f.token <= last || f.hash != hash || f.degraded {
			t.Errorf("run %d knows %+v after token %d, want attempt %d of %s", i, f, last, attempt, hash)
		}
		if a := receive(t, watch.acquired, "the hook"); a.Token != f.token || a.Attempt != attempt || a.KeyHash != hash {
			t.Errorf("hook told %+v of %+v", a, f)
		}
		last = f.token
	}
}

func testIdempotent(t *testing.T, s *suite) {
	runs := &counter{}
	site := s.mount(t, runs, s.idempotent(t))
	r := request{user: "idempotent", key: `"k"`, body: "order"}
	first := site.do(r).fresh(t, http.StatusCreated, "1")
	for _, spelling := range []string{`"k"`, "k", `  "k"; note=1`} {
		r.key = spelling
		a := site.do(r).replayed(t, http.StatusCreated, "1")
		if a.header.Get("Content-Type") != first.header.Get("Content-Type") {
			t.Errorf("Content-Type %q, at first %q", a.header.Get("Content-Type"), first.header.Get("Content-Type"))
		}
	}
	r.key = "other"
	site.do(r).fresh(t, http.StatusCreated, "2")
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
		before := runs.runs.Load()
		site.do(request{method: method, user: "idempotent", key: "k"}).want(t, http.StatusCreated)
		runs.ran(t, before+1) // only POST and PATCH are guarded
	}
}

// testProof: a request whose record is lost gets the response that was committed with the proof of the first one, in
// place of what its handler answers to the error of its transaction. Another request with its key is refused at once.
func testProof(t *testing.T, s *suite) {
	p := coretest.NewProof()
	site := s.mount(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := p.InTx(r.Context(), "HTTP/1.1 201 Created\nContent-Type: text/plain\n\npaid"); err != nil {
			http.Error(w, "try again", http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "paid")
	}), s.idempotent(t, core.WithProof(p)))
	first, other := request{user: "proof", key: "k", body: "order"}, request{user: "proof", key: "k", body: "another order"}
	site.do(first).fresh(t, http.StatusCreated, "paid")
	for range 2 {
		forget(t, s.locks, idempotentKey(t, "proof", "k"))
		site.do(other).refused(t, http.StatusUnprocessableEntity, httplock.CodeKeyReused)
		site.do(first).replayed(t, http.StatusCreated, "paid")
		site.do(other).refused(t, http.StatusUnprocessableEntity, httplock.CodeKeyReused)
		site.do(first).replayed(t, http.StatusCreated, "paid")
	}
	if p.Rows() != 1 {
		t.Errorf("%d rows", p.Rows())
	}
}

// testRetention: a record is kept from the end of its run as long as the option says.
func testRetention(t *testing.T, s *suite) {
	runs := &counter{}
	site := s.mount(t, runs, s.once(t, core.WithRetention(time.Hour)))
	site.do(request{user: "retention"}).want(t, http.StatusCreated)
	r := record(t, s.locks, userKey(t, "retention"))
	if r.Retention > time.Hour || r.Retention < time.Hour-patience {
		t.Errorf("kept for %v, want an hour", r.Retention)
	}
	short := s.mount(t, runs, s.once(t, core.WithRetention(10*time.Millisecond)))
	short.do(request{user: "retention-short"}).want(t, http.StatusCreated)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for short.doWithin(ctx, request{user: "retention-short"}).status != http.StatusCreated {
		if ctx.Err() != nil {
			t.Fatal("the record does not expire")
		}
	}
	runs.ran(t, 3)
}
