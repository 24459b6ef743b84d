package main

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
)

// shop is the web shop of one replica.
type shop struct {
	name    string // of the replica
	item    string
	store   *store
	guards  guards
	gateway *gateway // the same for all replicas
	tasks   *asynq.Client
	queue   string      // of the tasks
	soldOut atomic.Bool // final: nothing is ever put back
}

// handler puts each guard around its handler, inside the mux, which knows the routes, and inside the authentication.
func (s *shop) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /cart/{id}/checkout", s.guards.checkout(http.HandlerFunc(s.checkout)))
	mux.Handle("POST /orders", s.guards.order(http.HandlerFunc(s.order)))
	mux.Handle("POST /payments", s.guards.payment(http.HandlerFunc(s.pay)))
	mux.HandleFunc("GET /stock", s.stock)
	return authenticate(mux)
}

func (s *shop) stock(w http.ResponseWriter, r *http.Request) {
	left, err := s.store.left(r.Context(), s.item)
	if err != nil {
		refuse(w, err)
		return
	}
	reply(w, http.StatusOK, map[string]any{"item": s.item, "left": left})
}

// elsewhere stands for a service that the shop asks between reading and writing: prices, the warehouse, the bank.
func elsewhere(ctx context.Context) error {
	timer := time.NewTimer(time.Millisecond + rand.N(2*time.Millisecond))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
