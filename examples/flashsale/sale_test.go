package main

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// small is a sale of a second or less, also under the race detector.
var small = config{
	users: 60, attempts: 3, stock: 20,
	clients: 16, replicas: 3,
	seed:     1,
	patience: 5 * time.Second,
	guards:   locked,
	redisURL: os.Getenv("REDIS_URL"),
}

func open(t *testing.T, cfg config) *site {
	t.Helper()
	s, err := openSite(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", s.dir, err)
		}
	})
	return s
}

func quiet(cfg config) progress {
	return &lines{out: io.Discard, total: int64(cfg.users * cfg.attempts)}
}

func sale(t *testing.T, cfg config) *report {
	t.Helper()
	r, err := hold(t.Context(), cfg, open(t, cfg), quiet(cfg))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	r.print(&text)
	t.Log(text.String())
	return r
}

func TestSaleKeepsItsInvariants(t *testing.T) {
	t.Parallel()
	r := sale(t, small)
	if r.broken() {
		t.Error("an invariant broke")
	}
	if got := r.tally.codes[codeOrdered]; got != small.stock {
		t.Errorf("%d users were told that they have an order, want %d", got, small.stock)
	}
	if got, want := len(r.tally.all), small.users*small.attempts; got != want || r.tally.failures > 0 {
		t.Errorf("%d requests and %d errors, want %d and none: %v", got, r.tally.failures, want, r.tally.failure)
	}
	if r.watch.waited == 0 {
		t.Error("nobody waited for the stock: the crowd was too small to show anything")
	}
}

func TestSaleWithoutLocksBreaks(t *testing.T) {
	t.Parallel()
	cfg := small
	cfg.unguarded, cfg.guards = true, unlocked
	r := sale(t, cfg)
	if r.audit.oversold() == 0 || r.audit.doubled == 0 {
		t.Errorf("%d oversold, %d users with two orders: the control shows nothing", r.audit.oversold(), r.audit.doubled)
	}
}

func TestEachLockIsNeeded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		keep func(locked, unlocked guards) guards
		harm func(audit) int
	}{
		"without the user's": {
			func(locked, unlocked guards) guards { return guards{unlocked.user, locked.stock} },
			func(a audit) int { return a.doubled },
		},
		"without the stock's": {
			func(locked, unlocked guards) guards { return guards{locked.user, unlocked.stock} },
			func(a audit) int { return a.oversold() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := small
			cfg.guards = func(locks *core.Client, cfg config) guards {
				return test.keep(locked(locks, cfg), unlocked(locks, cfg))
			}
			r, err := hold(t.Context(), cfg, open(t, cfg), quiet(cfg))
			if err != nil {
				t.Fatal(err)
			}
			if test.harm(r.audit) == 0 {
				t.Errorf("nothing broke: %+v", r.audit)
			}
		})
	}
}

func TestInvariantsNoticeEachFault(t *testing.T) {
	t.Parallel()
	fine := audit{start: 20, left: 0, orders: 20, ordered: 20, rising: true}
	for name, spoil := range map[string]func(*audit){
		"nothing":          func(*audit) {},
		"oversold":         func(a *audit) { a.orders, a.ordered, a.left = 21, 21, -1 },
		"lost update":      func(a *audit) { a.left = 1 },
		"two orders":       func(a *audit) { a.ordered, a.doubled = 19, 1 },
		"token fell":       func(a *audit) { a.rising = false },
		"unsold for users": func(a *audit) { a.orders, a.ordered, a.left = 19, 19, 1 },
	} {
		r := report{config: small, tally: newTally(), audit: fine}
		spoil(&r.audit)
		if got, want := r.broken(), name != "nothing"; got != want {
			t.Errorf("%s: broken %v, want %v", name, got, want)
		}
	}
}

func TestInterruptedSaleKeepsItsInvariants(t *testing.T) {
	t.Parallel()
	cfg := small
	cfg.users = 100_000
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	r, err := hold(ctx, cfg, open(t, cfg), quiet(cfg))
	if err != nil {
		t.Fatal(err)
	}
	if !r.interrupted || r.broken() || r.tally.failures > 0 {
		t.Errorf("interrupted %v, broken %v, first error %v", r.interrupted, r.broken(), r.tally.failure)
	}
}
