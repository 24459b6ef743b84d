package httpconformance

import (
	"fmt"
	"net/http"
	"reflect"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

var reuseTests = tests{
	"KeyOfAnotherUser":        testOtherUser,
	"KeyOfAnotherRequest":     testOtherRequest,
	"ComparesWhatIsAskedFor":  testFingerprint,
	"ComparesWholeBodies":     testLargePayloads,
	"OnceComparesIfAsked":     testOnceCompares,
	"OnceByPathAndRoute":      testOnceKeys,
	"OtherKeysRunBesides":     testBesides,
	"KindsOfGuardsDoNotClash": testKinds,
}

// testOtherUser: whoever sends another's key gets an answer of their own.
func testOtherUser(t *testing.T, s *suite) {
	runs := &counter{}
	site := s.mount(t, runs, s.idempotent(t))
	site.do(request{user: "other-ada", key: "k", body: "order"}).fresh(t, http.StatusCreated, "1")
	site.do(request{user: "other-bob", key: "k", body: "order"}).fresh(t, http.StatusCreated, "2")
	site.do(request{user: "other-ada", key: "k", body: "order"}).replayed(t, http.StatusCreated, "1")
	site.do(request{user: "other-bob", key: "k", body: "order"}).replayed(t, http.StatusCreated, "2")
	// The scope and the key are two texts, not one.
	site.do(request{user: "other-adak", key: "k"}).fresh(t, http.StatusCreated, "3")
	site.do(request{user: "other-ada", key: "kk"}).fresh(t, http.StatusCreated, "4")
	runs.ran(t, 4)
}

// testOtherRequest: a key belongs to one request, and no other one changes its record.
func testOtherRequest(t *testing.T, s *suite) {
	runs, guard := &counter{}, s.idempotent(t)
	site := s.serve(t, s.Handler(
		Route{Path: "/orders/{id}", Guards: []Guard{guard}, Handler: runs},
		Route{Path: "/refunds/{id}", Guards: []Guard{guard}, Handler: runs},
	))
	r := request{
		user: "reuse", key: "k", path: "/orders/1?dry=0", body: "order", header: http.Header{"Content-Type": {"text/a"}},
	}
	site.do(r).fresh(t, http.StatusCreated, "1")
	key := idempotentKey(t, r.user, "k")
	before := record(t, s.locks, key)
	for name, edit := range map[string]func(*request){
		"route":               func(r *request) { r.path = "/refunds/1?dry=0" },
		"path":                func(r *request) { r.path = "/orders/2?dry=0" },
		"method":              func(r *request) { r.method = http.MethodPatch },
		"query":               func(r *request) { r.path = "/orders/1?dry=1" },
		"no query":            func(r *request) { r.path = "/orders/1" },
		"body":                func(r *request) { r.body = "order2" },
		"no body":             func(r *request) { r.body = "" },
		"content type":        func(r *request) { r.header = http.Header{"Content-Type": {"text/b"}} },
		"body for type":       func(r *request) { r.body, r.header = "aorder", http.Header{"Content-Type": {"text/"}} },
		"method in early":     func(r *request) { r.method = http.MethodPatch; r.header.Set("Early-Data", "1") },
		"wait does not help":  func(r *request) { r.body = "other"; r.header.Set("Prefer", "wait=1") },
		"replay field forged": func(r *request) { r.body = "other"; r.header.Set("Idempotency-Replayed", "true") },
	} {
		t.Run(name, func(t *testing.T) {
			other := r
			other.header = r.header.Clone()
			edit(&other)
			site.do(other).refused(t, http.StatusUnprocessableEntity, httplock.CodeKeyReused)
		})
	}
	after := record(t, s.locks, key)
	before.Retention, after.Retention = 0, 0
	if !reflect.DeepEqual(before, after) {
		t.Errorf("the record changed from %+v to %+v", before, after)
	}
	site.do(r).replayed(t, http.StatusCreated, "1")
	runs.ran(t, 1)
}

// testFingerprint: the application chooses what of the body counts; the operation always does.
func testFingerprint(t *testing.T, s *suite) {
	first := func(p httplock.Payload) []byte { return p.Body[:1] }
	site := s.mount(t, &counter{}, s.idempotent(t, httplock.WithFingerprint(first)))
	r := request{user: "fingerprint", key: "k", body: "a1"}
	site.do(r).fresh(t, http.StatusCreated, "1")
	same := r
	same.body, same.path, same.header = "a2", "/orders/1?q=1", http.Header{"Content-Type": {"text/x"}}
	site.do(same).replayed(t, http.StatusCreated, "1")
	for _, edit := range []func(*request){
		func(r *request) { r.body = "b1" },
		func(r *request) { r.path = "/orders/2" },
		func(r *request) { r.method = http.MethodPatch },
	} {
		other := r
		edit(&other)
		site.do(other).refused(t, http.StatusUnprocessableEntity, httplock.CodeKeyReused)
	}
}

// testLargePayloads: what is not read cannot be compared, so nothing is compared in part.
func testLargePayloads(t *testing.T, s *suite) {
	const limit = 1000
	runs := &counter{}
	for name, guard := range map[string]Guard{
		"idempotent": s.idempotent(t, httplock.WithBodyLimit(limit)),
		"once":       s.once(t, httplock.WithBodyLimit(limit), httplock.WithReplay(), httplock.WithFingerprint(nil)),
	} {
		site := s.mount(t, runs, guard)
		for _, size := range []int{limit, limit + 1} {
			r := request{user: fmt.Sprint("large-", name, size), key: "k"}
			for _, last := range []string{"a", "b"} {
				r.body = string(make([]byte, size-1)) + last
				a := site.do(r)
				want := map[string]int{"a": http.StatusCreated, "b": http.StatusUnprocessableEntity}[last]
				if size > limit {
					want = http.StatusRequestEntityTooLarge
				}
				a.want(t, want)
			}
		}
	}
	runs.ran(t, 2)
}

func testOnceCompares(t *testing.T, s *suite) {
	site := s.mount(t, &counter{}, s.once(t, httplock.WithFingerprint(nil)))
	r := request{user: "once-compares", body: "a"}
	site.do(r).want(t, http.StatusCreated)
	site.do(r).refused(t, http.StatusConflict, httplock.CodeAlreadyCompleted)
	r.body = "b"
	site.do(r).refused(t, http.StatusUnprocessableEntity, httplock.CodeKeyReused)
}

// testOnceKeys: the keys tell apart what they say, and no more.
func testOnceKeys(t *testing.T, s *suite) {
	byID, byRoute := must(t)(s.Once(s.locks, ByID, unhurried(nil)...)), must(t)(s.Once(s.locks, ByRoute, unhurried(nil)...))
	h := &counter{}
	site := s.serve(t, s.Handler(
		Route{Path: "/carts/{id}", Guards: []Guard{byID}, Handler: h},
		Route{Path: "/orders/{id}", Guards: []Guard{byRoute}, Handler: h},
		Route{Path: "/refunds/{id}", Guards: []Guard{byRoute}, Handler: h},
	))
	for _, step := range []struct {
		method, path string
		status       int
	}{
		{"POST", "/carts/1", 201},
		{"POST", "/carts/2", 201},
		{"PUT", "/carts/1", 409},
		{"POST", "/orders/1", 201},
		{"POST", "/orders/2", 409},
		{"PUT", "/orders/1", 201},
		{"POST", "/refunds/1", 201},
	} {
		site.do(request{user: "once-keys", method: step.method, path: step.path}).want(t, step.status)
	}
}

func testBesides(t *testing.T, s *suite) {
	stage := newStage(t)
	for name, guard := range map[string]Guard{"once": s.once(t), "idempotent": s.idempotent(t)} {
		site := s.mount(t, stage, guard)
		for _, user := range []string{"1", "2", "3"} {
			site.aside(t.Context(), request{user: "besides-" + name + user, key: "k"})
			receive(t, stage.entered, "a run beside the others")
		}
	}
	close(stage.leave)
}

// testKinds: a lock and a record of the same key are two things.
func testKinds(t *testing.T, s *suite) {
	stage := newStage(t)
	locked := s.mount(t, stage, s.exclusive(t, core.WithWait(0)))
	once := s.mount(t, &counter{}, s.once(t))
	first := locked.aside(t.Context(), request{user: "kinds"})
	receive(t, stage.entered, "the run")
	once.do(request{user: "kinds"}).fresh(t, http.StatusCreated, "1")
	close(stage.leave)
	receive(t, first, "the answer").want(t, http.StatusCreated)
}
