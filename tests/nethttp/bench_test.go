package nethttp_test

import (
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

// guards are those whose cost is told: what a request that meets no other pays.
func guards(t testing.TB, rdb redis.UniversalClient) map[string]func(http.Handler) http.Handler {
	t.Helper()
	locks := newLocks(t, rdb)
	user := httplock.ByHeader("X-User")
	return map[string]func(http.Handler) http.Handler{
		"Bare":       func(next http.Handler) http.Handler { return next },
		"Exclusive":  httplock.Exclusive(locks.Mutex, user, core.WithWait(httpkit.Patience)),
		"Once":       httplock.Once(locks, user, unhurried),
		"Idempotent": httplock.Idempotent(locks, httplock.Unscoped(), unhurried),
	}
}

func created(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Location", "/orders/1")
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write([]byte(`{"order":1}`))
}

// fresh returns a request with a key that no other has.
func fresh(last *atomic.Int64) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/orders", nil)
	key := strconv.FormatInt(last.Add(1), 10)
	r.Header.Set("X-User", key)
	r.Header.Set("Idempotency-Key", key)
	return r
}

func BenchmarkGuards(b *testing.B) {
	var last atomic.Int64
	for name, guard := range guards(b, testkit.Start(b).Client()) {
		b.Run(name, func(b *testing.B) {
			handler := guard(http.HandlerFunc(created))
			b.ReportAllocs()
			for b.Loop() {
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, fresh(&last))
				if w.Code != http.StatusCreated {
					b.Fatal(w.Code, w.Body)
				}
			}
		})
	}
}

// BenchmarkSecond is the cost of a request whose key has a first one: a replayed answer, or a refusal.
func BenchmarkSecond(b *testing.B) {
	for name, status := range map[string]int{"Idempotent": http.StatusCreated, "Once": http.StatusConflict} {
		b.Run(name, func(b *testing.B) {
			handler := guards(b, testkit.Start(b).Client())[name](http.HandlerFunc(created))
			handler.ServeHTTP(httptest.NewRecorder(), fresh(new(atomic.Int64)))
			b.ReportAllocs()
			for b.Loop() {
				w := httptest.NewRecorder()
				if handler.ServeHTTP(w, fresh(new(atomic.Int64))); w.Code != status {
					b.Fatal(w.Code, w.Body)
				}
			}
		})
	}
}

// counter counts commands.
type counter struct{ commands atomic.Int64 }

func (c *counter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.commands.Add(1)
		return next(ctx, cmd)
	}
}

func (c *counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.commands.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}

// TestCommandsOfARequest: whoever meets nobody costs Redis two commands. A machine that is too busy to answer in time
// has some of them sent again, so the least of several rounds counts.
func TestCommandsOfARequest(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	count := new(counter)
	rdb.AddHook(count)
	var last atomic.Int64
	for name, guard := range guards(t, rdb) {
		handler := guard(http.HandlerFunc(created))
		handler.ServeHTTP(httptest.NewRecorder(), fresh(&last)) // Redis has to learn the scripts
		const rounds, requests = 5, 20
		least := int64(math.MaxInt64)
		for range rounds {
			before := count.commands.Load()
			for range requests {
				w := httptest.NewRecorder()
				if handler.ServeHTTP(w, fresh(&last)); w.Code != http.StatusCreated {
					t.Fatalf("%s: %d %s", name, w.Code, w.Body)
				}
			}
			least = min(least, count.commands.Load()-before)
		}
		want := int64(2 * requests)
		if name == "Bare" {
			want = 0
		}
		if least != want {
			t.Errorf("%s: %d commands for %d requests, want %d", name, least, requests, want)
		}
	}
}
