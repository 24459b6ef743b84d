package httpconformance

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

var panicTests = tests{
	"PanicInAHookKeepsNoKey":    testPanickingHooks,
	"PanicInAJudgeKeepsNoKey":   testPanickingJudge,
	"PanicInACodecKeepsNoKey":   testPanickingCodec,
	"PanicInAHookKeepsNoLock":   testPanickingHooksOfLocks,
	"PanicLeavesHeaderOfOthers": testPanicLeavesHeader,
}

// trap panics once it is set.
type trap struct{ set atomic.Bool }

func newTrap() *trap {
	t := &trap{}
	t.set.Store(true)
	return t
}

func (p *trap) spring() {
	if p.set.Load() {
		panic("application")
	}
}

// told is the suite with a client one of whose hooks panics.
func (p *trap) told(t testing.TB, s *suite, name string) *suite {
	t.Helper()
	h := core.Hooks{}
	switch name {
	case "RunStart":
		h.RunStart = func(ctx context.Context, _ core.RunStart) context.Context {
			p.spring()
			return ctx
		}
	case "RunEnd":
		h.RunEnd = func(context.Context, core.RunEnd) { p.spring() }
	case "Replayed", "Refused":
		h.NotRun = func(_ context.Context, not core.NotRun) {
			if (not.Reason == core.ReasonReplayed) == (name == "Replayed") {
				p.spring()
			}
		}
	}
	told := *s
	told.locks = newLocks(t, s.redis.Client(), core.WithHooks(h))
	return &told
}

// broken sends a request whose connection has to break. It takes a new one: see [site.expect].
func (x *site) broken(t testing.TB, name string, r request) {
	t.Helper()
	x.Client().CloseIdleConnections()
	if a := x.do(r); a.err == nil {
		t.Errorf("%s: status %d, want a broken connection: %s", name, a.status, a.body)
	}
}

// testPanickingHooks: the key is free or completed when the panic has gone on, and not renewed forever.
func testPanickingHooks(t *testing.T, s *suite) {
	for name, want := range map[string]core.State{"RunStart": core.StateNone, "RunEnd": core.StateCompleted} {
		runs, trap := &counter{}, newTrap()
		site := s.mount(t, runs, trap.told(t, s, name).idempotent(t))
		r := request{user: "panic-" + name, key: "k"}
		site.broken(t, name, r)
		if got := record(t, s.locks, idempotentKey(t, r.user, "k")).State; got != want {
			t.Errorf("%s: the record is %q, want %q", name, got, want)
		}
		trap.set.Store(false)
		a := site.do(r).want(t, http.StatusCreated)
		if replayed := a.header.Get("Idempotency-Replayed") != ""; replayed != (want == core.StateCompleted) {
			t.Errorf("%s: replayed %v", name, replayed)
		}
		runs.ran(t, 1)
	}
	for _, name := range []string{"Replayed", "Refused"} {
		runs, trap := &counter{}, newTrap()
		site := s.mount(t, runs, trap.told(t, s, name).idempotent(t))
		r := request{user: "panic-" + name, key: "k"}
		site.do(r).fresh(t, http.StatusCreated, "1")
		if name == "Refused" {
			r.body = "another"
		}
		site.broken(t, name, r)
		r.body = ""
		trap.set.Store(false)
		site.do(r).replayed(t, http.StatusCreated, "1")
	}
}

// testPanickingJudge: who panics has not judged.
func testPanickingJudge(t *testing.T, s *suite) {
	for _, policy := range []core.FailurePolicy{core.RetryFailures, core.HoldFailures} {
		judge := func(httplock.Handled) httplock.Disposition { panic("judge") }
		watch := newWatch()
		site := s.mount(t, chosenEnding(nil), s.told(t, watch).once(t, httplock.WithCompletion(judge),
			core.WithFailurePolicy(policy)))
		for name, e := range endings() {
			if e.write != nil {
				continue
			}
			r := request{user: "judge-panics-" + name, header: http.Header{"X-Ending": {name}}}
			if policy == core.HoldFailures {
				r.user += "-held"
			}
			site.broken(t, name, r)
			watch.ended(t, s, userKey(t, r.user), name, s.state(e, policy, false))
		}
	}
}

// breaking is a codec that panics.
type breaking struct{ seal, open *trap }

func (b breaking) Seal(plain []byte, _ string) ([]byte, error) {
	b.seal.spring()
	return plain, nil
}

func (b breaking) Open(sealed []byte, _ string) ([]byte, error) {
	b.open.spring()
	return sealed, nil
}

func testPanickingCodec(t *testing.T, s *suite) {
	codec := breaking{seal: newTrap(), open: newTrap()}
	site := s.mount(t, &counter{}, s.idempotent(t, httplock.WithCodec(codec)))
	r := request{user: "panic-codec", key: "k"}
	site.broken(t, "Seal", r)
	if got := record(t, s.locks, idempotentKey(t, r.user, "k")).State; got != core.StateCompleted {
		t.Errorf("the record is %q, want it completed without a value", got)
	}
	codec.seal.set.Store(false)
	other := request{user: "panic-codec", key: "l"}
	site.do(other).fresh(t, http.StatusCreated, "2")
	site.broken(t, "Open", other)
	codec.open.set.Store(false)
	site.do(other).replayed(t, http.StatusCreated, "2")
	site.do(r).refused(t, http.StatusConflict, httplock.CodeAlreadyCompleted)
}

func testPanickingHooksOfLocks(t *testing.T, s *suite) {
	runs, trap := &counter{}, newTrap()
	site := s.mount(t, runs, trap.told(t, s, "RunStart").exclusive(t))
	r := request{user: "panic-lock"}
	site.broken(t, "RunStart", r)
	trap.set.Store(false)
	site.do(r).fresh(t, http.StatusCreated, "1") // it would wait for a lock that is kept
}

// testPanicLeavesHeader: what a recovery answers to a panic at the end has nothing of the handler in it.
func testPanicLeavesHeader(t *testing.T, s *suite) {
	trap := newTrap()
	inner := s.Handler(Route{
		Path: "/orders/{id}", Guards: []Guard{trap.told(t, s, "RunEnd").once(t)}, Handler: ending{status: 201}.handler(nil),
	})
	site := s.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != "application" {
				t.Errorf("recovered %v", p)
			}
			http.Error(w, "sorry", http.StatusInternalServerError)
		}()
		inner.ServeHTTP(w, r)
	}))
	a := site.do(request{user: "panic-header"}).fresh(t, http.StatusInternalServerError, "sorry\n")
	if a.header.Get("X-Handler") != "" {
		t.Errorf("header %v, want none of the handler's", a.header)
	}
}
