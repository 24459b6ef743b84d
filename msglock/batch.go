package msglock

import (
	"context"
	"errors"
	"sync"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// OnceBatch is [Once] for consumers that take several messages at once: see [Guard.HandleBatch]. It panics if an argument is
// invalid.
func OnceBatch[M any](
	locks *core.Client, consumer string, key KeyFunc[M], handler func(context.Context, M) error, opts ...Option,
) func(ctx context.Context, batch []M) []error {
	return must(NewOnce(locks, consumer, key, handler, opts...)).HandleBatch
}

var errExited = errors.New("holdfast: msglock: the handler has ended its goroutine")

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
		it := &item[M]{visit: g.visit(ctx, m), turn: turn, ended: make(chan struct{})}
		turn = it.chain()
		if name := it.ask.Name; name != "" {
			it.twin, twins[name] = twins[name], it
		}
		items[i] = it
	}
	errs := seal.FactsOf(g.locks).Together(ctx, len(batch), func(ctx context.Context, i int, alone func()) error {
		return items[i].handle(ctx, alone)
	})
	for i, it := range items {
		if !it.returned {
			errs[i] = errExited
		}
	}
	return errs
}

// item is a message in a batch.
type item[M any] struct {
	*visit[M]
	twin     *item[M]        // the last one before it with the same key; nil if there is none
	turn     <-chan struct{} // closed when the handlers before it have ended
	leave    func()          // gives the turn to the next one
	ended    chan struct{}   // closed when its end is recorded
	returned bool
}

// chain returns the turn of the next item.
func (it *item[M]) chain() chan struct{} {
	next := make(chan struct{})
	it.leave = sync.OnceFunc(func() {
		<-it.turn
		close(next)
	})
	return next
}

// handle handles the message when it is its turn. What it asks Redis first with grouped leaves with those of the others, which wait
// for that until it has called alone.
func (it *item[M]) handle(grouped context.Context, alone func()) error {
	defer close(it.ended)
	defer it.leave()
	defer alone()
	call := it.run.Call
	it.run.Call = func(ctx context.Context) {
		defer it.leave() // before the end is recorded
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
	it.ask.Turn = func(ctx context.Context, ask asking) error {
		if it.twin == nil {
			return it.claim(ctx, grouped, ask)
		}
		alone()
		<-it.twin.ended
		return it.patience().Begin(ctx, ask)
	}
	err := it.visit.handle()
	it.returned = true
	return err
}

// claim asks once, together with the others, and again if it may wait.
func (it *item[M]) claim(ctx, grouped context.Context, ask asking) error {
	patience := it.patience()
	bounded, cancel := context.WithTimeout(grouped, max(patience.Ask, min(patience.Wait, guards.AskTimeout)))
	defer cancel()
	first := ask(bounded, 0)
	busy := guards.Busy(first)
	if patience.Wait < guards.ShortestWait || !busy && !guards.IsOutage(first) {
		return first
	}
	err := patience.Begin(ctx, ask)
	if busy && guards.IsOutage(err) { // the other message is still being handled, as far as is known
		return first
	}
	return err
}

func (it *item[M]) patience() guards.Patience { return it.engine.Patience(it.ask, it.Wait) }
