package msglock

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// OnceBatch is [Once] for consumers that take several messages at once: see [Guard.HandleBatch]. It panics if an argument is
// invalid.
func OnceBatch[M any](
	locks *core.Client, consumer string, key KeyFunc[M], handler func(context.Context, M) error, opts ...Option,
) func(ctx context.Context, batch []M) []error {
	return guards.Must(NewOnce(locks, consumer, key, handler, opts...)).HandleBatch
}

// HandleBatch handles messages in the order given, one after the other, and returns the error of each by index, as Handle does. The
// keys are claimed in one pipeline per master, as [core.Client.BeginAll] does, before the first handler is called. Records are
// written while the next handlers run. So a batch takes far fewer round trips than its messages alone.
//
// All claims are renewed until their message has been handled, and [WithHeartbeat] covers that time as well. A message whose key is
// that of an earlier one in the batch is claimed when the earlier one has ended, so it is acknowledged if that has completed. After
// a failure, the messages behind it are handled all the same. If a handler panics, the others are handled, and the panic continues
// after that, as an error that has the index of the message and the stack of its handler.
func (g *Guard[M]) HandleBatch(ctx context.Context, batch []M) []error {
	items, twins := make([]*item[M], len(batch)), make(map[string]*item[M], len(batch))
	turn := make(chan struct{})
	close(turn)
	for i, m := range batch {
		it := &item[M]{visit: g.visit(ctx, m), turn: turn, next: make(chan struct{}), ended: make(chan struct{})}
		turn = it.next
		if name := it.ask.Name; name != "" {
			it.twin, twins[name] = twins[name], it
		}
		items[i] = it
	}
	return seal.FactsOf(g.locks).Client.Together(ctx, len(batch), func(ctx context.Context, i int, alone func()) error {
		return items[i].handle(ctx, alone)
	})
}

// item is a message in a batch.
type item[M any] struct {
	*visit[M]
	twin  *item[M]        // the last one before it with the same key; nil if there is none
	turn  <-chan struct{} // closed when the handlers before it have ended
	next  chan struct{}   // the turn of the next one
	ended chan struct{}   // closed when its end is recorded
}

// handle handles the message when it is its turn. What it asks Redis first with grouped leaves with those of the others, which wait
// for that until it has called alone.
func (it *item[M]) handle(grouped context.Context, alone func()) error {
	leave := sync.OnceFunc(func() {
		<-it.turn
		close(it.next)
	})
	defer close(it.ended)
	defer leave()
	defer alone()
	call := it.run.Call
	it.run.Call = func(ctx context.Context) {
		defer leave() // before the end is recorded
		call(ctx)
	}
	it.run.Pass = func(ctx context.Context) {
		alone()
		<-it.turn
		it.run.Call(ctx)
	}
	it.run.Around = func(ctx context.Context, _ *guards.Outcome, next func(context.Context)) error {
		select {
		case <-it.turn:
		case <-ctx.Done():
		}
		if ctx.Err() != nil { // the batch or the lease has ended meanwhile
			return context.Cause(ctx)
		}
		next(ctx)
		return nil
	}
	it.ask.Turn = func(_ context.Context, ask func(context.Context, time.Duration) error) error {
		if it.twin != nil {
			alone()
			<-it.twin.ended
		}
		patience := it.engine.Patience(it.ask, it.config.Wait)
		patience.FailOpen = true // it asks once first: the others would wait as long as it does
		return patience.Begin(grouped, ask)
	}
	return it.visit.handle()
}
