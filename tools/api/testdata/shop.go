package shop

import (
	"context"

	inner "example.com/shop/internal/hidden"
)

// Limit is a constant.
const Limit = 3

// ErrSold is a variable.
var ErrSold error

// Order is a struct.
type Order struct {
	ID     string
	secret string
}

// Ship has a pointer receiver.
func (o *Order) Ship(ctx context.Context) error { return ctx.Err() }

// Option is sealed.
type Option interface{ apply() }

// Courier can be implemented.
type Courier interface{ Carry(o Order) bool }

// Name is a string.
type Name string

// Alias is another name.
type Alias = map[string]Order

// Map is generic.
func Map[T any](all []T, f func(T) T) []T { return all }

func hidden(o Order) string { return o.secret }

var _ = hidden

// Parcel is an alias of a type that is out of reach.
type Parcel = inner.Parcel
