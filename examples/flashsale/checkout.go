package main

import (
	"context"
	"net/http"

	"github.com/holdfast-go/holdfast/core"
)

// price of a cart with one voucher, in cents.
const price = 990

// quote is what a cart costs. Each checkout makes the next one of its cart; the greatest number is the valid one.
type quote struct {
	User   string `json:"user"`
	Cart   string `json:"cart"`
	Number int    `json:"quote"`
	Cents  int    `json:"cents"`
	Token  int64  `json:"token"` // of the lock on the cart
}

func (s *shop) checkout(w http.ResponseWriter, r *http.Request) {
	q, err := s.quote(r.Context(), userOf(r), r.PathValue("id"))
	if err != nil {
		refuse(w, err)
		return
	}
	reply(w, http.StatusCreated, q)
}

// quote prices a cart: it reads the number of the last quote, asks for the price, and writes the next one. Two at once
// would give the same number to two quotes. It must be called under the lock on the cart.
func (s *shop) quote(ctx context.Context, user, cart string) (*quote, error) {
	q := &quote{User: user, Cart: cart, Cents: price}
	q.Token, _ = core.TokenFrom(ctx)
	last, err := s.store.lastQuote(ctx, user, cart)
	if err != nil {
		return nil, err
	}
	if err := elsewhere(ctx); err != nil {
		return nil, err
	}
	q.Number = last + 1
	return q, s.store.addQuote(ctx, q)
}
