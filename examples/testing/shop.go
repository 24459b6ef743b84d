// Package shop is code that locks, to be tested: see shop_test.go for the tests, which you can copy.
//
//	go test -v ./examples/testing
package shop

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// ErrOrdered refuses a second order of a user within a day.
var ErrOrdered = errors.New("you have ordered already")

// A Shop takes orders and settles them. All replicas share a Redis.
type Shop struct {
	Locks *core.Client
	// Place writes an order to the database.
	Place func(ctx context.Context, user string) error
	// Pay pays out one order. It returns false if no order is left.
	Pay func(ctx context.Context) (more bool, err error)
}

// Order places one order per user and day.
func (s *Shop) Order(ctx context.Context, user string) error {
	once := s.Locks.Once("order:"+user, core.WithRetention(24*time.Hour))
	result, err := once.Do(ctx, func(ctx context.Context) ([]byte, error) { return nil, s.Place(ctx, user) })
	if err == nil && result.Replayed {
		return ErrOrdered
	}
	return err
}

// Settle pays out all orders, unless another replica does that now.
func (s *Shop) Settle(ctx context.Context) error {
	return s.Locks.Mutex("settlement").TryDo(ctx, func(ctx context.Context) error {
		for {
			if more, err := s.Pay(ctx); !more || err != nil {
				return err
			}
		}
	})
}

// Handler takes orders over HTTP, from the user that basic authentication names.
func (s *Shop) Handler() http.Handler {
	user := func(r *http.Request) (httplock.Key, error) {
		name, _, _ := r.BasicAuth()
		return httplock.PrincipalKey(name)
	}
	place := func(w http.ResponseWriter, r *http.Request) {
		name, _, _ := r.BasicAuth()
		if err := s.Place(r.Context(), name); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusCreated)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /orders", httplock.Once(s.Locks, httplock.Keys(httplock.ByRoute(), user),
		httplock.WithDetachedContext())(http.HandlerFunc(place)))
	return mux
}
