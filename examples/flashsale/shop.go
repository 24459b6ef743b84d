package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

var (
	errInProgress     = errors.New("an order of this user is in progress")
	errAlreadyOrdered = errors.New("already ordered")
	errSoldOut        = errors.New("sold out")
)

// shop is the web shop of one replica.
type shop struct {
	name    string // of the replica
	item    string
	store   *store
	guards  guards
	soldOut atomic.Bool // final: nothing is ever put back
}

func (s *shop) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /orders", s.guards.user(http.HandlerFunc(s.order)))
	mux.HandleFunc("GET /stock", s.stock)
	return mux
}

func (s *shop) order(w http.ResponseWriter, r *http.Request) {
	o, err := s.buy(r.Context(), userOf(r))
	if err != nil {
		refuse(w, err)
		return
	}
	reply(w, http.StatusCreated, o)
}

// buy sells one to a user: it looks whether the user may have one and whether there is one, takes the money,
// and writes. It must be called under the lock on the user.
func (s *shop) buy(ctx context.Context, user string) (*order, error) {
	o := &order{User: user, Item: s.item, Replica: s.name}
	o.UserToken, _ = core.TokenFrom(ctx)
	ordered, err := s.store.hasOrder(ctx, user)
	switch {
	case err != nil:
		return nil, err
	case ordered:
		return nil, errAlreadyOrdered
	case s.soldOut.Load():
		return nil, errSoldOut // without waiting for the stock
	}
	err = s.guards.stock(ctx, "stock:"+s.item, func(ctx context.Context) error {
		o.Token, _ = core.TokenFrom(ctx)
		left, err := s.store.left(ctx, s.item)
		if err != nil {
			return err
		}
		if left <= 0 {
			s.soldOut.Store(true)
			return errSoldOut
		}
		if err := pay(ctx); err != nil {
			return err
		}
		return s.store.sell(ctx, o, left-1)
	})
	if err != nil {
		return nil, errors.Join(err, context.Cause(ctx)) // the cause: the lock on the user was lost
	}
	return o, nil
}

// pay stands for the payment service.
func pay(ctx context.Context) error {
	timer := time.NewTimer(time.Millisecond + rand.N(2*time.Millisecond))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *shop) stock(w http.ResponseWriter, r *http.Request) {
	left, err := s.store.left(r.Context(), s.item)
	if err != nil {
		refuse(w, err)
		return
	}
	reply(w, http.StatusOK, map[string]any{"item": s.item, "left": left})
}
