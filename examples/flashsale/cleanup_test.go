package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
)

// A sale on a Redis that others use leaves that as it was, but for the last token, which all locks of a Redis share.
func TestSaleLeavesNothingInRedis(t *testing.T) {
	t.Parallel()
	shared := miniredis.RunT(t)
	defer moveTime(shared)()
	if err := shared.Set("of-another", "1"); err != nil {
		t.Fatal(err)
	}
	cfg := small
	cfg.redisURL = "redis://" + shared.Addr()
	s, err := openSite(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hold(t.Context(), cfg, s, quiet(cfg)); err != nil {
		t.Error(err)
	}
	if during := len(shared.Keys()); during < cfg.stock {
		t.Errorf("%d keys during the sale: the test shows nothing", during)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
	left := slices.DeleteFunc(shared.Keys(), func(key string) bool {
		return strings.HasPrefix(key, "holdfast:client:") // of each replica, for as long as its longest lease
	})
	if !slices.Equal(left, []string{"holdfast:token", "of-another"}) {
		t.Errorf("%d keys after the sale, want the other one and the token: %q", len(left), left)
	}
}
