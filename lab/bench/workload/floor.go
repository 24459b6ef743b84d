package workload

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/lab/bench/contestant"
	"github.com/holdfast-go/holdfast/lab/bench/measure"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// floor measures what a handoff cannot do without: a message to the next holder, and a script that lets him in. Both
// every 2 ms, as in the contest, because a machine that sleeps in between takes longer to answer.
type floor struct {
	rdb      *redis.Client
	messages *redis.PubSub
	received chan time.Time
	scripts  contestant.Session
}

const floorChannel = "bench:floor"

func newFloor(server *testkit.Server) (*floor, error) {
	scripts, err := contestant.OpenBare(server.Addr())
	if err != nil {
		return nil, err
	}
	f := &floor{rdb: redis.NewClient(server.Options()), scripts: scripts, received: make(chan time.Time, 1)}
	f.messages = f.rdb.Subscribe(context.Background(), floorChannel)
	if _, err := f.messages.Receive(context.Background()); err != nil {
		f.close()
		return nil, fmt.Errorf("subscribe: %w", err)
	}
	go func() {
		defer close(f.received)
		for {
			if _, err := f.messages.ReceiveMessage(context.Background()); err != nil {
				return // closed
			}
			f.received <- time.Now()
		}
	}()
	return f, nil
}

func (f *floor) round(ctx context.Context, book *measure.Book, size int, counts bool) error {
	const samples = 100
	var deliveries, scripts []time.Duration
	for range samples {
		time.Sleep(HoldFor)
		began := time.Now()
		if err := f.rdb.Publish(ctx, floorChannel, "x").Err(); err != nil {
			return fmt.Errorf("publish: %w", err)
		}
		deliveries = append(deliveries, (<-f.received).Sub(began))
		time.Sleep(HoldFor)
		began = time.Now()
		unlock, err := f.scripts.Lock(ctx, "floor")
		if err != nil {
			return err
		}
		scripts = append(scripts, time.Since(began))
		if err := unlock(ctx); err != nil {
			return err
		}
	}
	if !counts {
		return nil
	}
	add := func(figure string, value float64) {
		book.Add(measure.Key{Work: WorkContest, Who: Floor, Size: size, Figure: figure}, value)
	}
	delivery := measure.Quantile(measure.Microseconds(deliveries), 0.5)
	script := measure.Quantile(measure.Microseconds(scripts), 0.5)
	add("delivery us", delivery)
	add("script us", script)
	add("handoff p50 us", delivery+script)
	return nil
}

func (f *floor) close() {
	// What fails to close is of no use any more.
	_ = f.messages.Close()
	_ = f.rdb.Close()
	_ = f.scripts.Close()
	for range f.received {
	}
}
