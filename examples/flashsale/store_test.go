package main

import (
	"errors"
	"testing"
)

func TestFencesRefuseStaleWrites(t *testing.T) {
	t.Parallel()
	s := open(t, small).replicas[0].shop.store
	for _, step := range []struct {
		name      string
		userToken int64
		token     int64
		want      error
	}{
		{"first", 10, 100, nil},
		{"stock lost to a later grant", 11, 99, errStale},
		{"user lost to a later grant", 9, 101, errStale},
		{"later", 12, 102, nil},
	} {
		o := order{User: "alice", Item: item, UserToken: step.userToken, Token: step.token}
		if err := s.sell(t.Context(), &o, 7); !errors.Is(err, step.want) {
			t.Errorf("%s: %v, want %v", step.name, err, step.want)
		}
	}
	for _, step := range []struct {
		number int
		token  int64
		want   error
	}{{1, 10, nil}, {2, 12, nil}, {2, 11, errStale}} {
		q := quote{User: "alice", Cart: "7", Number: step.number, Token: step.token}
		if err := s.addQuote(t.Context(), &q); !errors.Is(err, step.want) {
			t.Errorf("quote under token %d: %v, want %v", step.token, err, step.want)
		}
	}
	if got := s.stale.Load(); got != 3 {
		t.Errorf("%d stale writes counted, want 3", got)
	}
	audit, err := s.audit(t.Context(), item, small.stock)
	if err != nil {
		t.Fatal(err)
	}
	if audit.orders != 2 || audit.left != 7 || audit.ordered != 1 || audit.doubled != 1 || !audit.rising ||
		audit.quotes != 2 || audit.clashed != 0 {
		t.Errorf("after two orders and quotes of one user, and three refusals: %+v", audit)
	}
}
