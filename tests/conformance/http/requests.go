package httpconformance

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

var requestTests = tests{
	"SlowBodyHoldsNoKey":        testSlowBody,
	"BodyOverTheLimitIsRefused": testBodyTooLarge,
	"LargeBodiesPass":           testLargeBodies,
	"HandlerGetsTheBody":        testBodies,
	"OptionalKey":               testOptionalKey,
	"KeyHeader":                 testKeyHeader,
	"Methods":                   testMethods,
	"UpgradeDoesNotBypass":      testUpgrade,
}

// testSlowBody: who sends slowly claims nothing meanwhile.
func testSlowBody(t *testing.T, s *suite) {
	for name, guard := range map[string]Guard{
		"exclusive": s.exclusive(t, core.WithWait(0)), "once": s.once(t), "idempotent": s.idempotent(t),
	} {
		entered := make(chan struct{}, 10)
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			entered <- struct{}{}
			_, _ = io.Copy(w, r.Body)
		})
		reading, site := s.readable(t, h, guard)
		user := "slow-" + name
		body, sender := io.Pipe()
		slow := site.aside(t.Context(), request{user: user, key: "k", source: body})
		_, _ = io.WriteString(sender, "sl")
		receive(t, reading, "the slow body to be read")
		if len(entered) != 0 {
			t.Errorf("%s: the handler got half a body", name)
		}
		site.do(request{user: user, key: "k", body: "victim"}).fresh(t, http.StatusOK, "victim")
		_, _ = io.WriteString(sender, "ow")
		_ = sender.Close()
		want := map[string]int{"exclusive": 200, "once": 409, "idempotent": 422}[name]
		receive(t, slow, "the slow answer").want(t, want)
	}
}

// endless is a body that continues until nobody reads it.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// testBodyTooLarge: the rest of it is not waited for.
func testBodyTooLarge(t *testing.T, s *suite) {
	runs := &counter{}
	site := s.mount(t, runs, s.idempotent(t))
	for name, body := range map[string]io.Reader{
		"known length": bytes.NewReader(make([]byte, 2<<20)), "no end": endless{},
	} {
		r := request{user: "large", key: "k", source: body}
		resp, err := site.Client().Do(site.request(t.Context(), r))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		told := strings.Contains(string(text), httplock.CodePayloadTooLarge)
		if resp.StatusCode != http.StatusRequestEntityTooLarge || !told {
			t.Errorf("%s: status %d: %s", name, resp.StatusCode, text)
		}
		if !s.http2 && !resp.Close {
			t.Errorf("%s: the connection stays open for the rest of the body", name)
		}
	}
	runs.ran(t, 0)
}

// testLargeBodies: what is not compared need not be held in memory.
func testLargeBodies(t *testing.T, s *suite) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprint(w, n, err)
	})
	for name, guard := range map[string]Guard{"exclusive": s.exclusive(t), "once": s.once(t)} {
		site := s.mount(t, h, guard)
		for i, size := range []int{64 << 10, 64<<10 + 1, 3 << 20} {
			for _, known := range []bool{true, false} {
				var body io.Reader = bytes.NewReader(make([]byte, size))
				if !known {
					body = io.MultiReader(body)
				}
				a := site.do(request{user: fmt.Sprint("large-", name, i, known), source: body})
				a.fresh(t, http.StatusOK, fmt.Sprint(size, nil))
			}
		}
	}
}

func testBodies(t *testing.T, s *suite) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_, _ = io.Copy(w, r.Body)
	})
	const limit = 1000
	for name, guard := range map[string]Guard{
		"once":       s.once(t, httplock.WithBodyLimit(limit), httplock.WithReplay()),
		"idempotent": s.idempotent(t),
	} {
		site := s.mount(t, h, guard)
		for _, size := range []int{0, 1, limit - 1, limit, limit + 1, 5 * limit} {
			sent := strings.Repeat("b", size)
			r := request{user: fmt.Sprint("bodies-", name, size), key: "k"}
			r.source = iotest.OneByteReader(strings.NewReader(sent))
			site.do(r).fresh(t, http.StatusOK, sent)
			r.source = strings.NewReader(sent)
			site.do(r).replayed(t, http.StatusOK, sent)
		}
	}
}

func testOptionalKey(t *testing.T, s *suite) {
	runs := &counter{}
	site := s.mount(t, runs, s.idempotent(t, httplock.OptionalKey()))
	for range 2 {
		site.do(request{user: "optional", body: "order"}).want(t, http.StatusCreated)
	}
	runs.ran(t, 2)
	r := request{user: "optional", header: http.Header{"Idempotency-Key": {""}}}
	site.do(r).refused(t, http.StatusBadRequest, httplock.CodeKeyInvalid) // it is there, and wrong
	for range 2 {
		site.do(request{user: "optional", key: "k", body: "order"}).want(t, http.StatusCreated)
	}
	runs.ran(t, 3)
	guarded := must(t)(s.Idempotent(s.locks, ByPrincipal, unhurried(nil, httplock.OptionalKey())...))
	s.mount(t, runs, guarded).do(request{key: "k"}).refused(t, 401, httplock.CodeScopeRequired)
	runs.ran(t, 3)
}

func testKeyHeader(t *testing.T, s *suite) {
	site := s.mount(t, &counter{}, s.idempotent(t, httplock.WithKeyHeader("x-request-token")))
	site.do(request{user: "field", key: "k"}).refused(t, http.StatusBadRequest, httplock.CodeKeyRequired)
	r := request{user: "field", header: http.Header{"X-Request-Token": {"k"}}}
	site.do(r).fresh(t, http.StatusCreated, "1")
	site.do(r).replayed(t, http.StatusCreated, "1")
}

func testMethods(t *testing.T, s *suite) {
	guarded := make(chan bool, 1)
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		guarded <- core.KeyHash(r.Context()) != ""
	})
	sites := map[string]*site{
		"once": s.mount(t, h, s.once(t)), "idempotent": s.mount(t, h, s.idempotent(t)),
		"chosen": s.mount(t, h, s.once(t, httplock.WithMethods("GET", "PURGE"))),
	}
	for method, want := range map[string]map[string]bool{
		"GET":     {"chosen": true},
		"HEAD":    {},
		"OPTIONS": {},
		"POST":    {"once": true, "idempotent": true},
		"PUT":     {"once": true},
		"PATCH":   {"once": true, "idempotent": true},
		"DELETE":  {"once": true},
	} {
		for name, site := range sites {
			site.do(request{method: method, user: "methods-" + name + method, key: "k"}).want(t, http.StatusOK)
			if got := receive(t, guarded, "the run"); got != want[name] {
				t.Errorf("%s %s: guarded %v, want %v", name, method, got, want[name])
			}
		}
	}
}

// testUpgrade: a header field that any client can send is no way around the guard.
func testUpgrade(t *testing.T, s *suite) {
	if s.http2 {
		t.Skip("HTTP/2 has no Upgrade")
	}
	runs := &counter{}
	site := s.mount(t, runs, s.once(t))
	r := request{user: "upgrade", header: http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}}}
	site.do(r).want(t, http.StatusCreated)
	site.do(r).refused(t, http.StatusConflict, httplock.CodeAlreadyCompleted)
	runs.ran(t, 1)
}
