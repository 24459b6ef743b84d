package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfast-go/holdfast/core"
)

// charge is money taken for an order.
type charge struct {
	ID    int64 `json:"receipt"`
	Order int64 `json:"order"`
	Cents int   `json:"cents"`
}

// pay charges a user for an order. It does not look whether the order is paid already: the guard answers a repeated
// request with the receipt of the first.
func (s *shop) pay(w http.ResponseWriter, r *http.Request) {
	c := &charge{Cents: price}
	err := json.NewDecoder(r.Body).Decode(&struct {
		Order *int64 `json:"order"`
	}{&c.Order})
	if err != nil {
		refuse(w, fmt.Errorf("%w: %w", errBadRequest, err))
		return
	}
	if err := s.charge(r.Context(), userOf(r), c); err != nil {
		refuse(w, err)
		return
	}
	s.enqueueReceipt(r.Context(), receipt{Order: c.Order, User: userOf(r), Cents: c.Cents})
	reply(w, http.StatusCreated, c)
}

// charge has the payment gateway take the money and writes that down. An error of the shop's own database before that
// has charged nothing, nor has a wait for the gateway that was too long: the handler releases the key, so that the client can try
// again. An error after that says nothing about the money, and the guard holds the key.
func (s *shop) charge(ctx context.Context, user string, c *charge) error {
	buyer, err := s.store.buyer(ctx, c.Order)
	switch {
	case errors.Is(err, errNoOrder), err == nil && buyer != user:
		return errNoOrder
	case err != nil:
		_ = core.Release(ctx) // an error means that Redis has not confirmed it: it counts when the handler ends
		return err
	}
	called := false
	err = s.guards.gateway(ctx, func(ctx context.Context) error {
		called = true
		return s.gateway.take(ctx)
	})
	if err != nil {
		if !called {
			_ = core.Release(ctx)
		}
		return err
	}
	return s.store.addCharge(ctx, c)
}
