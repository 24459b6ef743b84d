package main

import (
	"context"
	"errors"
	"net/http"

	"github.com/holdfast-go/holdfast/core"
)

// order is one sale.
type order struct {
	ID        int64  `json:"order"`
	User      string `json:"user"`
	Item      string `json:"item"`
	Replica   string `json:"replica"`
	UserToken int64  `json:"user_token"` // of the user's attempt to order
	Token     int64  `json:"token"`      // of the lock on the stock
}

func (s *shop) order(w http.ResponseWriter, r *http.Request) {
	o, err := s.buy(r.Context(), userOf(r))
	if err != nil {
		refuse(w, err)
		return
	}
	reply(w, http.StatusCreated, o)
}

// buy sells one to a user: it looks whether there is one, has it put aside, and writes. It does not look whether the
// user has one already: it must be called behind the guard that lets a user order once.
func (s *shop) buy(ctx context.Context, user string) (*order, error) {
	if s.soldOut.Load() {
		return nil, errSoldOut // without waiting for the stock
	}
	o := &order{User: user, Item: s.item, Replica: s.name}
	o.UserToken, _ = core.TokenFrom(ctx)
	err := s.guards.stock(ctx, "stock:"+s.item, func(ctx context.Context) error {
		o.Token, _ = core.TokenFrom(ctx)
		left, err := s.store.left(ctx, s.item)
		if err != nil {
			return err
		}
		if left <= 0 {
			s.soldOut.Store(true)
			return errSoldOut
		}
		if err := elsewhere(ctx); err != nil {
			return err
		}
		if err := s.store.sell(ctx, o, left-1); err != nil {
			return err
		}
		ordered(ctx)
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, context.Cause(ctx)) // the cause: the lease of the attempt was lost
	}
	return o, nil
}

// ordered records in the guard that the user has ordered now. The commit of the database was the point of no return, not the
// answer: without this word, a stock lock that is lost between the two (503), a panic or a crash of the process would
// count as a failed order, and the user could order again.
//
// What is left is a crash between the commit and this call, and a commit without a reply, of which nobody knows how it
// ended. A shop that cannot take even that says [core.Hold] before the commit, or has the database refuse the
// second order. An error only means that Redis has not confirmed the word: it counts all the same when the handler
// ends.
func ordered(ctx context.Context) { _ = core.Complete(ctx) }
