package msglock

import (
	"context"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
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
// All claims are renewed until their message has been handled, and [WithHeartbeat] covers that time as well. A message
// whose key is the key of an earlier one in the batch is claimed when the earlier one has ended, so it is acknowledged
// if that has completed. After a failure, the messages behind it are handled all the same. If a handler panics, the
// others are handled, and the panic continues after that, as an error that has the index of the message and the stack
// of its handler. Of several panics the first one continues; [core.Hooks] have all.
func (g *Guard[M]) HandleBatch(ctx context.Context, batch []M) []error {
	items := make([]*guards.Item, len(batch))
	for i, m := range batch {
		v := g.visit(ctx, m)
		items[i] = &guards.Item{Ask: &v.ask, Run: &v.run, Handle: v.handle}
	}
	return g.once.Together(ctx, items)
}
