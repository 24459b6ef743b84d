// Http-chi guards payments in chi, which takes the guards of net/http as they are.
//
// Run it from the root of the repository. With REDIS_URL, its records stay for a minute.
//
//	go run ./examples/http-chi
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/examples/internal/example"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

func main() { example.Main(run) }

func run(_ context.Context, out io.Writer, rdb *redis.Client) error {
	locks, err := core.New(rdb)
	if err != nil {
		return err
	}
	defer locks.Close()

	guard := httplock.Idempotent(locks, httplock.ByContext(userKey{}),
		core.WithFailurePolicy(core.HoldFailures),
		core.WithRetention(time.Minute)) // a week in a service: after it, a retry charges again, and a held payment too
	payments := 0
	router := chi.NewRouter()
	router.Use(authenticate)
	router.With(guard).Post("/payments", func(w http.ResponseWriter, r *http.Request) {
		payments++                     // the money moves
		_ = core.Complete(r.Context()) // if Redis does not reply, it is tried again at the end
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "payment %d", payments)
	})
	return example.Payments(out, router)
}

type userKey struct{}

// authenticate stands for real authentication, which belongs around the guard.
func authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, _, _ := r.BasicAuth()
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
	})
}
