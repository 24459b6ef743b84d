package guard

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/seal"
)

// Item is a work item in a batch. Ask and Run are Do's arguments, and Handle calls Do with them. Together sets Turn of
// Ask, and Around and Pass of Run.
type Item struct {
	Ask    *Ask
	Run    *Run
	Handle func() error

	twin  *Item           // the last one before it with the same name; nil if there is none
	turn  <-chan struct{} // closed when the functions before it have ended
	next  chan struct{}   // the turn of the next one
	ended chan struct{}   // closed when its end is recorded
}

// Together handles items in the order given, one after the other, and returns the error of each by index. What they ask Redis first
// leaves together, before the first function is called.
func (o *Once) Together(ctx context.Context, items []*Item) []error {
	twins := make(map[string]*Item, len(items))
	turn := make(chan struct{})
	close(turn)
	for _, it := range items {
		it.turn, it.next, it.ended = turn, make(chan struct{}), make(chan struct{})
		turn = it.next
		if name := it.Ask.Name; name != "" {
			it.twin, twins[name] = twins[name], it
		}
	}
	return seal.FactsOf(o.client).Client.Together(ctx, len(items), func(ctx context.Context, i int, alone func()) error {
		return o.inTurn(ctx, items[i], alone)
	})
}

// inTurn handles an item when it is its turn. What it asks Redis first with grouped leaves with the requests of the
// others, which wait for that until it has called alone.
func (o *Once) inTurn(grouped context.Context, it *Item, alone func()) error {
	leave := sync.OnceFunc(func() {
		<-it.turn
		close(it.next)
	})
	defer close(it.ended)
	defer leave()
	defer alone()
	call := it.Run.Call
	it.Run.Call = func(ctx context.Context) {
		defer leave() // before the end is recorded
		call(ctx)
	}
	it.Run.Pass = func(ctx context.Context) {
		alone()
		<-it.turn
		it.Run.Call(ctx)
	}
	it.Run.Around = func(ctx context.Context, _ *Outcome, next func(context.Context)) error {
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
	it.Ask.Turn = func(_ context.Context, ask func(context.Context, time.Duration) error) error {
		if it.twin != nil {
			alone()
			<-it.twin.ended
		}
		patience := o.Patience(*it.Ask, o.Wait)
		patience.FailOpen = true // it asks once first: the others would wait as long as it does
		return patience.Begin(grouped, func(ctx context.Context, wait time.Duration) error {
			if wait > 0 {
				alone() // it may wait for a run of this process, before it sends anything
			}
			return ask(ctx, wait)
		})
	}
	return it.Handle()
}
