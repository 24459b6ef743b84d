package nethttp_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// shop answers by the body of a request.
type shop struct {
	*httptest.Server
	began, end chan struct{}
	runs       int
}

func newShop(t *testing.T, scope httplock.KeyFunc, profile []httplock.Option) *shop {
	t.Helper()
	s := &shop{began: make(chan struct{}), end: make(chan struct{})}
	handler := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch s.runs++; {
		case strings.Contains(string(body), "slow"):
			close(s.began)
			<-s.end
		case strings.Contains(string(body), "fail"):
			w.WriteHeader(http.StatusInternalServerError)
		case strings.Contains(string(body), "invalid"):
			w.WriteHeader(http.StatusPaymentRequired)
		}
		_, _ = w.Write([]byte(`{"id": "ch_1"}`))
	}
	guard := httplock.Idempotent(newLocks(t, testkit.Start(t).Client()), scope, append(patientOnce(), profile...)...)
	mux := http.NewServeMux()
	for _, pattern := range []string{"POST /charges", "POST /refunds", "PUT /charges"} {
		mux.Handle(pattern, guard(http.HandlerFunc(handler)))
	}
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// reply is what a client gets.
type reply struct {
	status   int
	header   http.Header
	body     string
	kind     string // of an error
	code     string
	replayed bool
}

func (s *shop) send(t *testing.T, method, path, key, body string) (r reply) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := s.Client().Do(req)
	if err != nil {
		t.Error(err)
		return r
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	type profileError struct{ Type, Code, Message string }
	var flat profileError
	var nested struct{ Error *profileError }
	_ = json.Unmarshal(text, &flat)
	if _ = json.Unmarshal(text, &nested); nested.Error != nil {
		flat = *nested.Error
	}
	if flat.Type != "" && flat.Message == "" {
		t.Errorf("an error without message: %s", text)
	}
	return reply{
		resp.StatusCode, resp.Header, string(text), flat.Type, flat.Code, resp.Header.Get("Idempotent-Replayed") == "true",
	}
}

func (r reply) want(t *testing.T, status int, kind, code string, replayed bool) {
	t.Helper()
	if r.status != status || r.kind != kind || r.code != code || r.replayed != replayed {
		t.Errorf("%+v, want %d %q %q, replayed %v", r, status, kind, code, replayed)
	}
}

// TestStripeProfile holds the rules of docs.stripe.com/api/idempotent_requests and of its errors.
func TestStripeProfile(t *testing.T) {
	t.Parallel()
	s := newShop(t, httplock.Unscoped(), httplock.StripeProfile())
	// The status and the body of the first request are saved, whether it succeeds or fails, and returned again, 500 included.
	for key, status := range map[string]int{"a": 200, "fail": 500, "invalid": 402} {
		body := `{"` + key + `": 1}`
		first := s.send(t, http.MethodPost, "/charges", key, body)
		second := s.send(t, http.MethodPost, "/charges", key, body)
		first.want(t, status, "", "", false)
		second.want(t, status, "", "", true)
		if first.body != second.body || second.header.Get(httplock.MarkerField) != "" {
			t.Errorf("%+v, then %+v", first, second)
		}
	}
	// Parameters that differ are an error, and so is another endpoint.
	s.send(t, http.MethodPost, "/charges", "a", `{"a": 2}`).want(t, 400, "idempotency_error", "", false)
	s.send(t, http.MethodPost, "/refunds", "a", `{"a": 1}`).want(t, 400, "idempotency_error", "", false)
	// A key of up to 255 characters.
	s.send(t, http.MethodPost, "/charges", strings.Repeat("k", 255), `{}`).want(t, 200, "", "", false)
	s.send(t, http.MethodPost, "/charges", strings.Repeat("k", 256), `{}`).want(t, 400, "invalid_request_error", "key_invalid", false)
	// All POST requests accept keys, and need none; for other methods keys have no effect.
	for range 2 {
		s.send(t, http.MethodPost, "/charges", "", `{}`).want(t, 200, "", "", false)
		s.send(t, http.MethodPut, "/charges", "put", `{}`).want(t, 200, "", "", false)
	}
	// A request that conflicts with another one that is executing is not saved, and can be retried.
	first := make(chan reply, 1)
	go func() { first <- s.send(t, http.MethodPost, "/charges", "slow", `{"slow": 1}`) }()
	<-s.began
	s.send(t, http.MethodPost, "/charges", "slow", `{"slow": 1}`).want(t, 409, "invalid_request_error", "idempotency_key_in_use", false)
	close(s.end)
	(<-first).want(t, 200, "", "", false)
	s.send(t, http.MethodPost, "/charges", "slow", `{"slow": 1}`).want(t, 200, "", "", true)
}

// TestACPProfile holds the rules of the protocol's proposal on idempotency.
func TestACPProfile(t *testing.T) {
	t.Parallel()
	s := newShop(t, httplock.Keys(httplock.ByRoute(), httplock.Unscoped()), httplock.ACPProfile())
	// Mandatory on every POST, at most 255 characters.
	s.send(t, http.MethodPost, "/charges", "", `{}`).want(t, 400, "invalid_request", "idempotency_key_required", false)
	s.send(t, http.MethodPost, "/charges", strings.Repeat("k", 256), `{}`).want(t, 400, "invalid_request", "key_invalid", false)
	s.send(t, http.MethodPost, "/charges", strings.Repeat("k", 255), `{}`).want(t, 200, "", "", false)
	// A retry is answered as the first request, and marked. White space and the order of names do not count.
	first := s.send(t, http.MethodPost, "/charges", "k", `{"a": 1, "b": 2}`)
	again := s.send(t, http.MethodPost, "/charges", "k", `{"b":2,"a":1}`)
	first.want(t, 200, "", "", false)
	again.want(t, 200, "", "", true)
	if first.body != again.body {
		t.Errorf("%+v, then %+v", first, again)
	}
	// Another request with the key.
	s.send(t, http.MethodPost, "/charges", "k", `{"a": 2}`).want(t, 422, "invalid_request", "idempotency_conflict", false)
	// A key belongs to its endpoint.
	s.send(t, http.MethodPost, "/refunds", "k", `{"a": 3}`).want(t, 200, "", "", false)
	// While the first one runs.
	slow := make(chan reply, 1)
	go func() { slow <- s.send(t, http.MethodPost, "/charges", "slow", `{"slow": 1}`) }()
	<-s.began
	busy := s.send(t, http.MethodPost, "/charges", "slow", `{"slow": 1}`)
	busy.want(t, 409, "invalid_request", "idempotency_in_flight", false)
	if after := busy.header.Get("Retry-After"); after == "" || after == "0" {
		t.Errorf("Retry-After %q", after)
	}
	close(s.end)
	(<-slow).want(t, 200, "", "", false)
}

// TestProfilesWhileRedisIsUnreachable: errors of the server have the form of the profile too.
func TestProfilesWhileRedisIsUnreachable(t *testing.T) {
	t.Parallel()
	relay := testkit.Start(t).Relay()
	locks := newLocks(t, relay.Client())
	relay.Refuse(true)
	relay.Reset()
	t.Cleanup(relay.Heal)
	for kind, profile := range map[string][]httplock.Option{
		"api_error": httplock.StripeProfile(), "service_unavailable": httplock.ACPProfile(),
	} {
		options := append(profile, httplock.WithAskTimeout(200*time.Millisecond), core.WithFailurePolicy(core.HoldFailures))
		s := &shop{Server: httptest.NewServer(httplock.Idempotent(locks, httplock.Unscoped(), options...)(http.NotFoundHandler()))}
		s.send(t, http.MethodPost, "/", "k", `{}`).want(t, 503, kind, "lock_unavailable", false)
		s.Close()
	}
}
