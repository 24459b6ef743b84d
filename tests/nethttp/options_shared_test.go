package nethttp_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

// TestZeroGuard: a Guard that no function of the package has made says so.
func TestZeroGuard(t *testing.T) {
	t.Parallel()
	var g httplock.Guard
	_, peek := g.PeekKey(t.Context(), httplock.Key{})
	_, records := g.Records(t.Context(), "ada")
	for method, err := range map[string]error{
		"Peek": peek, "Records": records,
		"Resolve": g.Resolve(t.Context(), core.Record{}, nil), "Forget": g.Forget(t.Context(), core.Record{}),
	} {
		if err == nil || errors.Is(err, httplock.ErrKeyRequired) || !strings.Contains(err.Error(), "NewOnce") {
			t.Errorf("%s: error %v, want one that says how to make a guard", method, err)
		}
	}
	defer func() {
		if p, _ := recover().(string); !strings.Contains(p, "zero Guard") {
			t.Errorf("panic %q, want one that names the zero Guard", p)
		}
	}()
	g.Wrap(http.NotFoundHandler())
}

// TestWrongClientOpensNoGuard: two replicas of a service have a client that never fits their Redis. Each of twelve users orders
// twice, once at each replica. Although the guards fail open, nobody gets two orders, and each service logs one warning.
func TestWrongClientOpensNoGuard(t *testing.T) {
	t.Parallel()
	cluster := testkit.StartCluster(t, 3)
	master := testkit.Start(t, testkit.TCP())
	replica := testkit.Start(t)
	replica.ReplicaOf(master.Addr())
	for name, connect := range map[string]func() redis.UniversalClient{
		"Cluster": func() redis.UniversalClient {
			rdb := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: []string{cluster.Masters[0].Addr()}})
			t.Cleanup(func() { _ = rdb.Close() })
			return rdb
		},
		"Replica": func() redis.UniversalClient { return replica.Client() },
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			orders := make(map[string]int)
			var services []http.Handler
			var logs [2]testkit.Log
			for i := range logs {
				locks, err := core.New(connect(), core.WithLogger(slog.New(slog.NewTextHandler(&logs[i], nil))))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = locks.Close() })
				services = append(services, httplock.Once(locks, httplock.ByHeader("User"), httplock.FailOpen(), httplock.WithAskTimeout(httpkit.Patience))(
					http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						mu.Lock()
						defer mu.Unlock()
						orders[r.Header.Get("User")]++
					})))
			}
			refused := 0
			for i := range 12 {
				for _, service := range services {
					r := httptest.NewRequest(http.MethodPost, "/orders", http.NoBody)
					r.Header.Set("User", fmt.Sprint("user", i))
					w := httptest.NewRecorder()
					service.ServeHTTP(w, r)
					if w.Code == http.StatusServiceUnavailable {
						refused++
					}
				}
			}
			if refused == 0 {
				t.Error("no request was refused for the client")
			}
			for user, n := range orders {
				if n > 1 {
					t.Errorf("%s got %d orders", user, n)
				}
			}
			for i := range logs {
				text := logs[i].String()
				warnings := strings.Count(text, "locks do not work with this setup")
				if want := map[string]int{"Cluster": 1}[name]; warnings != want || strings.Contains(text, "runs unguarded") || strings.Contains(text, "user1") {
					t.Errorf("service %d: %d warnings of the client, want %d: %s", i, warnings, want, text)
				}
			}
		})
	}
}

// TestStricterGuardInside: a guard with the same key that holds failures makes the run of the guard around it hold them.
func TestStricterGuardInside(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	charges := 0
	pay := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		charges++
		w.WriteHeader(http.StatusInternalServerError)
	})
	lenient := httplock.Idempotent(locks, httplock.Unscoped(), patientOnce()...)
	strict := httplock.Idempotent(locks, httplock.Unscoped(), append(patientOnce(), core.WithFailurePolicy(core.HoldFailures))...)
	srv := httpkit.Serve(t, lenient(strict(pay)))
	for _, want := range []int{http.StatusInternalServerError, http.StatusConflict, http.StatusConflict} {
		if got := postKey(t, srv, "k"); got != want {
			t.Errorf("status %d, want %d", got, want)
		}
	}
	if charges != 1 {
		t.Errorf("%d charges", charges)
	}
}

// TestUnknownDispositionIsIgnored: the verdict of a classifier that returns none of the dispositions is ignored.
func TestUnknownDispositionIsIgnored(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	runs := 0
	guard := httplock.Idempotent(locks, httplock.Unscoped(), append(patientOnce(),
		httplock.WithCompletion(func(httplock.Handled) httplock.Disposition { return 77 }))...)
	srv := httpkit.Serve(t, guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		runs++
		w.WriteHeader(http.StatusCreated)
	})))
	for range 3 {
		if got := postKey(t, srv, "k"); got != http.StatusCreated {
			t.Errorf("status %d", got)
		}
	}
	if runs != 1 {
		t.Errorf("%d runs", runs)
	}
}

// leaky is a codec that fails, and returns the text all the same.
type leaky struct{}

func (leaky) Seal(plain []byte, _ string) ([]byte, error) { return plain, errors.New("no key") }

func (leaky) Open(sealed []byte, _ string) ([]byte, error) { return sealed, nil }

// TestUnsealedTextIsNotRecorded, whatever a codec returns with its error.
func TestUnsealedTextIsNotRecorded(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	guard := httplock.Idempotent(locks, httplock.Unscoped(), append(patientOnce(), httplock.WithCodec(leaky{}))...)
	srv := httpkit.Serve(t, guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("secret")) })))
	for _, want := range []int{http.StatusOK, http.StatusConflict} {
		if got := postKey(t, srv, "k"); got != want {
			t.Errorf("status %d, want %d", got, want)
		}
	}
}

// TestMistakesFailWhenBuilt: methods in lower case would guard nothing, a body memory below the limit refuse all.
func TestMistakesFailWhenBuilt(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	for says, opt := range map[string]httplock.Option{
		"upper case": httplock.WithMethods("post"), "body memory": httplock.WithBodyMemory(10),
		"WithWait(-1ns)": core.WithWait(-1),
	} {
		if _, err := httplock.NewIdempotent(locks, httplock.Unscoped(), opt); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// TestMistakesOfTheProgramAreNoOutage: no retry mends them.
func TestMistakesOfTheProgramAreNoOutage(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	read := httplock.Exclusive(locks.Read, httplock.Constant("all"), unhurried, core.WithWait(httpkit.Patience))
	write := httplock.Exclusive(locks.Write, httplock.Constant("all"), unhurried, core.WithWait(httpkit.Patience))
	if got := postKey(t, httpkit.Serve(t, read(write(ok))), "k"); got != http.StatusInternalServerError {
		t.Errorf("an upgrade: status %d", got)
	}
}

// patientOnce are options for a busy machine.
func patientOnce() []httplock.Option {
	return []httplock.Option{httplock.WithAskTimeout(30 * time.Second), httplock.WithFinishTimeout(30 * time.Second)}
}

// postKey returns the status of the answer to a request with an Idempotency-Key.
func postKey(t *testing.T, srv *httptest.Server, key string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", key)
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}
