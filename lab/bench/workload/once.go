package workload

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/holdfast-go/holdfast/lab/bench/contestant"
	"github.com/holdfast-go/holdfast/lab/bench/measure"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// WorkOnce is the workload of [Bench.Once] in the book.
const WorkOnce = "once"

// OnceName and BareTrips are who takes part in it.
const (
	OnceName  = "httplock.Once"
	BareTrips = "its two scripts, bare"
)

// Once compares a request that meets no other, through the chain of handlers, with two round trips: of the same two
// scripts, which record the same, sent by go-redis with nothing around them.
func (b *Bench) Once(ctx context.Context) error {
	const requests = 50
	rounds := 100 * b.PairRounds // see Pairs
	b.logf("once: %d rounds of %d requests", rounds, requests)
	rdb, locks, err := b.client()
	if err != nil {
		return err
	}
	defer rdb.Close()
	defer locks.Close()
	handler := httplock.Once(locks, httplock.ByHeader("X-User"))(http.HandlerFunc(created))
	number := 0
	request := func() error {
		number++
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/orders", nil)
		r.Header.Set("X-User", fmt.Sprint(number))
		w := httptest.NewRecorder()
		if handler.ServeHTTP(w, r); w.Code != http.StatusCreated {
			return fmt.Errorf("status %d: %s", w.Code, w.Body)
		}
		return nil
	}
	if err := request(); err != nil {
		return err
	}
	records := rdb.Keys(ctx, "holdfast:once*").Val()
	if len(records) != 1 {
		return fmt.Errorf("%d records of one request", len(records))
	}
	value, err := rdb.HGet(ctx, records[0], "value").Result()
	if err != nil {
		return fmt.Errorf("what a request records: %w", err)
	}
	bare, err := contestant.OpenBareOnce(b.Servers[0].Addr(), value)
	if err != nil {
		return err
	}
	defer bare.Close()
	players := []struct {
		name string
		do   func() error
	}{{OnceName, request}, {BareTrips, func() error { return bare.Run(ctx) }}}
	for round := range rounds + 1 {
		for _, i := range order(round, len(players)) {
			p := players[i]
			if err := b.onceRound(p.name, requests, round > 0, p.do); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

func created(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }

func (b *Bench) onceRound(who string, requests int, counts bool, do func() error) error {
	sends := []string{"evalsha", "eval"}
	before := measure.Loads(b.Servers[0], sends)
	took := make([]time.Duration, 0, requests)
	for range requests {
		began := time.Now()
		if err := do(); err != nil {
			return err
		}
		took = append(took, time.Since(began))
	}
	if counts {
		key := measure.Key{Work: WorkOnce, Who: who, Size: 1, Figure: "p50 us"}
		b.Book.Add(key, measure.Quantile(measure.Microseconds(took), 0.5))
		load := measure.Loads(b.Servers[0], sends).Since(before)
		key.Figure = "commands"
		b.Book.Add(key, load.Commands/float64(requests))
		key.Figure = "server us"
		b.Book.Add(key, load.Usec/float64(requests))
	}
	return nil
}
