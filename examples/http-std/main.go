// Http-std guards payments in net/http: a client that tries again gets the first answer, and pays once.
//
// Run it from the root of the repository. With REDIS_URL, its records stay for a minute.
//
//	go run ./examples/http-std
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

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

	// Keys are apart for each user. A payment that fails is held: an operator has to find out whether it charged.
	guard, err := httplock.NewIdempotent(locks, httplock.ByContext(userKey{}),
		core.WithFailurePolicy(core.HoldFailures),
		core.WithRetention(time.Minute)) // a week in a service: after it, a retry charges again, and a held payment too
	if err != nil {
		return err
	}
	payments := 0
	pay := func(w http.ResponseWriter, r *http.Request) {
		payments++                     // the money moves
		_ = core.Complete(r.Context()) // if Redis does not reply, it is tried again at the end
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "payment %d", payments)
	}

	mux := http.NewServeMux()
	mux.Handle("POST /payments", authenticate(guard.Wrap(http.HandlerFunc(pay))))
	return example.Payments(out, mux)
}

type userKey struct{}

// authenticate stands for real authentication, which belongs around the guard.
func authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, _, _ := r.BasicAuth()
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
	})
}
