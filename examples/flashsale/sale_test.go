package main

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// small is a sale of a second or less, also under the race detector.
var small = config{
	users: 60, attempts: 3, stock: 20,
	clients: 16, replicas: 3, gateway: 1,
	gatewayTime: 100 * time.Millisecond,
	seed:        1,
	patience:    15 * time.Second,
	guards:      locked,
	redisURL:    os.Getenv("REDIS_URL"),
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
	return &lines{out: io.Discard, total: int64(cfg.users)}
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
	for line := range strings.Lines(text.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > columns {
			t.Errorf("%d columns, more than %d: %s", n, columns, line)
		}
	}
	return r
}

func TestSaleKeepsItsInvariants(t *testing.T) {
	t.Parallel()
	keepsInvariants(t, small)
}

// TestSaleOnServer: with REDIS_URL the sale uses that server.
func TestSaleOnServer(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t, testkit.TCP())
	cfg := small
	cfg.redisURL = "redis://" + server.Addr()
	keepsInvariants(t, cfg)
	if server.CommandStats()["evalsha"].Calls == 0 {
		t.Error("the server has run no script")
	}
}

func keepsInvariants(t *testing.T, small config) {
	t.Helper()
	r := sale(t, small)
	if r.broken() {
		t.Error("an invariant broke")
	}
	if got := r.tally.codes[codeOrdered]; got != small.stock {
		t.Errorf("%d users were told that they have an order, want %d", got, small.stock)
	}
	if r.tally.failures > 0 {
		t.Errorf("%d errors, want none: %v", r.tally.failures, r.tally.failure)
	}
	if got, want := r.tally.codes[codePaid]+r.tally.codes[codeReplayed], small.stock*small.attempts; got < want {
		t.Errorf("%d receipts, want at least %d", got, want)
	}
	if got := r.watch.replayed; got < small.stock {
		t.Errorf("%d duplicates of %d receipts were acknowledged", got, small.stock)
	}
	if r.watch.waited == 0 {
		t.Error("nobody waited for the stock: the crowd was too small to show anything")
	}
}

// crowded makes the guards of the baseline for one sale, in which callers of stock and gateway come in pairs: on a busy
// machine they come so far apart that they are one at a time although no guard sees to it.
func crowded() func(*core.Client, config) guards {
	stock, gateway := make(chan struct{}), make(chan struct{})
	return func(locks *core.Client, cfg config) guards {
		g := unlocked(locks, cfg)
		g.stock = func(ctx context.Context, _ string, work func(context.Context) error) error {
			awaitOther(ctx, stock)
			return work(ctx)
		}
		g.gateway = func(ctx context.Context, call func(context.Context) error) error {
			awaitOther(ctx, gateway)
			return call(ctx)
		}
		return g
	}
}

// awaitOther returns when another caller has come. The last one of a sale continues alone.
func awaitOther(ctx context.Context, meeting chan struct{}) {
	select {
	case meeting <- struct{}{}:
	case <-meeting:
	case <-time.After(small.patience / 5):
	case <-ctx.Done():
	}
}

func TestSaleWithoutGuardsBreaks(t *testing.T) {
	t.Parallel()
	cfg := small
	cfg.unguarded, cfg.guards = true, crowded()
	r := sale(t, cfg)
	a := r.audit
	if a.oversold() == 0 || a.doubled == 0 || a.clashed == 0 || a.twice == 0 || a.again == 0 || a.peak <= cfg.gateway || r.tally.differing == 0 {
		t.Errorf("not all that can go wrong went wrong: %+v, %d clients with several receipts", a, r.tally.differing)
	}
}

func TestEachGuardIsNeeded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		drop func(kept *guards, none guards)
		harm func(audit) int
	}{
		"without the cart's": {
			func(kept *guards, none guards) { kept.checkout = none.checkout },
			func(a audit) int { return a.clashed },
		},
		"without the user's": {
			func(kept *guards, none guards) { kept.order = none.order },
			func(a audit) int { return a.doubled },
		},
		"without the payment's": {
			func(kept *guards, none guards) { kept.payment = none.payment },
			func(a audit) int { return a.twice },
		},
		"without the stock's": {
			func(kept *guards, none guards) { kept.stock = none.stock },
			func(a audit) int { return a.oversold() },
		},
		"without the gateway's": {
			func(kept *guards, none guards) { kept.gateway = none.gateway },
			func(a audit) int { return max(a.peak-small.gateway, 0) },
		},
		"without the receipt's": {
			func(kept *guards, none guards) { kept.receipt = none.receipt },
			func(a audit) int { return a.again },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, none := small, crowded()
			cfg.guards = func(locks *core.Client, cfg config) guards {
				g := locked(locks, cfg)
				test.drop(&g, none(locks, cfg))
				return g
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
	fine := audit{start: 20, left: 0, orders: 20, ordered: 20, rising: true, charges: 20, receipts: 20}
	for name, spoil := range map[string]func(*audit, *tally){
		"nothing":            func(*audit, *tally) {},
		"oversold":           func(a *audit, _ *tally) { a.orders, a.ordered, a.charges, a.left = 21, 21, 21, -1 },
		"lost update":        func(a *audit, _ *tally) { a.left = 1 },
		"two orders":         func(a *audit, _ *tally) { a.ordered, a.doubled = 19, 1 },
		"token fell":         func(a *audit, _ *tally) { a.rising = false },
		"unsold for users":   func(a *audit, _ *tally) { a.orders, a.ordered, a.charges, a.left = 19, 19, 19, 1 },
		"quotes clashed":     func(a *audit, _ *tally) { a.clashed = 1 },
		"not charged":        func(a *audit, _ *tally) { a.charges = 19 },
		"charged twice":      func(a *audit, _ *tally) { a.twice = 1 },
		"gateway overrun":    func(a *audit, _ *tally) { a.peak = small.gateway + 1 },
		"settled twice":      func(a *audit, _ *tally) { a.settlements, a.ticks = 3, 2 },
		"receipt sent again": func(a *audit, _ *tally) { a.receipts, a.again = 21, 1 },
		"receipt missing":    func(a *audit, _ *tally) { a.receipts = 19 },
		"other receipt": func(_ *audit, t *tally) {
			t.payment([]answer{{code: codePaid, body: "1"}, {code: codeReplayed, body: "2"}})
		},
		"no receipt": func(_ *audit, t *tally) { t.payment([]answer{{code: codeBrokenOff}}) },
	} {
		r := report{config: small, tally: newTally(), audit: fine}
		spoil(&r.audit, r.tally)
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
