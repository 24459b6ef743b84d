package httpconformance

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

var secrecyTests = tests{
	"UserTextStaysOut":         testUserText,
	"SecretHidesFingerprints":  testSecretFingerprints,
	"OtherSecretIsAnotherName": testOtherSecret,
}

// journal is where a client logs.
type journal struct{ testkit.Log }

// testUserText: who has asked for what is neither in Redis nor in logs nor in errors.
func testUserText(t *testing.T, s *suite) {
	server := testkit.Start(t)
	rdb := server.Client()
	logged := new(journal)
	watch, secret := newWatch(), httplock.WithKeySecret([]byte("sixteen bytes or more"))
	locks, err := core.New(rdb, watch.hooks(), core.WithLogger(slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{
		Level: slog.LevelDebug,
	}))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	private := request{user: "private-user", key: "private-key", path: "/orders/private-path", body: "private-body"}
	other := private
	other.body = "private-other"
	for _, guard := range []Guard{
		must(t)(s.Exclusive(locks.Mutex, ByID, unhurried(nil, secret)...)),
		must(t)(s.Once(locks, ByID, unhurried(nil, secret, core.WithFailurePolicy(core.HoldFailures))...)),
		must(t)(s.Idempotent(locks, ByID, unhurried(nil, secret)...)),
		must(t)(s.Idempotent(locks, ByRoute, unhurried(nil, secret, httplock.WithKeyHeader("X-User"))...)),
	} {
		site := s.mount(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if !strings.Contains(dump(t, rdb), "http:") {
				t.Error("the dump of Redis lacks what runs")
			}
			w.WriteHeader(http.StatusTeapot)
		}), guard)
		for _, r := range []request{private, private, other} {
			site.do(r)
		}
	}
	server.Kill()
	s.mount(t, &counter{}, must(t)(s.Once(locks, ByID, unhurried(nil, secret)...))).do(private)
	for len(watch.refused) > 0 {
		_, _ = fmt.Fprintf(logged, "%v %s\n", <-watch.refused, httplock.CodeKeyReused)
	}
	text := logged.String()
	if !strings.Contains(text, "key_hash=") || strings.Contains(text, "private") || strings.Contains(text, "sixteen") {
		t.Errorf("logs and errors: %s", text)
	}
}

// dump returns all that Redis holds, and fails the test if it tells of a user.
func dump(t testing.TB, rdb *redis.Client) string {
	var all strings.Builder
	keys, err := rdb.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Error(err)
	}
	for _, key := range keys {
		fields, err := rdb.HGetAll(t.Context(), key).Result()
		if err != nil {
			value, err := rdb.Get(t.Context(), key).Result()
			if err != nil && err != redis.Nil {
				t.Errorf("%s: %v", key, err)
			}
			fields = map[string]string{"": value}
		}
		_, _ = fmt.Fprintln(&all, key, fields)
	}
	if strings.Contains(all.String(), "private") {
		t.Errorf("Redis holds users' text:\n%s", &all)
	}
	return all.String()
}

// testSecretFingerprints: paths and bodies can be guessed like users, so their digests need the secret too.
func testSecretFingerprints(t *testing.T, s *suite) {
	prints := map[string]bool{}
	for _, secret := range []string{"", "sixteen bytes, one", "sixteen bytes, two"} {
		var opts []httplock.Option
		if secret != "" {
			opts = append(opts, httplock.WithKeySecret([]byte(secret)))
		}
		site := s.mount(t, &counter{}, s.idempotent(t, opts...))
		site.do(request{user: "prints", key: "k", body: "order"}).want(t, http.StatusCreated)
		prints[string(record(t, s.locks, idempotentKey(t, "prints", "k"), opts...).Fingerprint)] = true
	}
	if len(prints) != 3 {
		t.Errorf("%d fingerprints of one request under three secrets, want 3", len(prints))
	}
}

func testOtherSecret(t *testing.T, s *suite) {
	runs := &counter{}
	for i, secret := range []string{"sixteen bytes, one", "sixteen bytes, two"} {
		site := s.mount(t, runs, s.once(t, httplock.WithKeySecret([]byte(secret))))
		site.do(request{user: "secrets"}).fresh(t, http.StatusCreated, fmt.Sprint(i+1))
		site.do(request{user: "secrets"}).refused(t, http.StatusConflict, httplock.CodeAlreadyCompleted)
	}
}
