package main

import (
	"strings"
	"testing"
)

func TestDescribe(t *testing.T) {
	t.Parallel()
	lines, err := describe("testdata")
	if err != nil {
		t.Fatal(err)
	}
	const want = `package example.com/shop
	const Limit untyped int = 3
	func Map[T any](all []T, f func(T) T) []T
	method (*Order) Ship(ctx context.Context) error
	method (*Parcel) Send() int
	type Alias = map[string]Order
	type Courier interface
	type Courier interface: Carry(o Order) bool
	type Name string
	type Option interface, sealed
	type Order struct
	type Order struct: ID string
	type Parcel = hidden.Parcel
	type Parcel struct
	type Parcel struct: Weight int
	var ErrSold error`
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestDescribeBrokenPackage: half an API is no baseline.
func TestDescribeBrokenPackage(t *testing.T) {
	t.Parallel()
	if _, err := describe(t.TempDir()); err == nil {
		t.Error("no error")
	}
}
